// The fields of a relayed response by what they may change (docs/architecture.md#relays).
import HTTPTypes

/// Classifies the fields of responses that are relayed.
enum RelayFields {
    enum Role {
        /// The line must be the same in each response.
        case fixed
        /// The value may differ, and the client receives it.
        case free
        case length, coding, connection
        /// A URL that the client receives: the same in each response, but for a path in the response to a write.
        case location
        /// Responses with this field are not relayed.
        case obstacle
    }

    /// The fields whose values change from one response to the next, and decide nothing about a response that is never stored.
    private static let free: Set<[UInt8]> = names([
        "date", "etag", "last-modified", "expires", "age", "server-timing", "x-request-id", "x-correlation-id", "x-trace-id", "x-runtime",
        "x-response-time", "x-amz-request-id", "x-amz-id-2", "cf-ray",
    ])
    private static let obstacles: Set<[UInt8]> = names([
        "upgrade", "trailer", "te", "proxy-authenticate", "proxy-authentication-info", "proxy-connection", "retry-after", "content-range",
    ])

    static let close = Array("close".utf8)
    static let keepAlive = Array("keep-alive".utf8)
    private static let contentLength = Array("content-length".utf8)
    private static let transferEncoding = Array("transfer-encoding".utf8)
    private static let connection = Array("connection".utf8)
    private static let location = Array("location".utf8)

    private static func names(_ names: [String]) -> Set<[UInt8]> { Set(names.map { Array($0.utf8) }) }

    /// - Parameter name: in lower case.
    static func role(of name: [UInt8]) -> Role {
        if name == contentLength { return .length }
        if name == transferEncoding { return .coding }
        if name == connection || name == keepAlive { return .connection }
        if name == location { return .location }
        return free.contains(name) ? .free : obstacles.contains(name) ? .obstacle : .fixed
    }

    /// True for a field that is not the same in each reply: it is written anew for each.
    static func isLeftOut(_ name: HTTPField.Name) -> Bool {
        switch role(of: Array(name.canonicalName.utf8)) {
        case .free, .length, .coding, .connection: true
        case .fixed, .obstacle, .location: false
        }
    }

    /// True for the value of a `Location` that is a path. The URL of a server is translated by the gateway that its client uses.
    static func isPath(_ value: [UInt8]) -> Bool {
        value.first == UInt8(ascii: "/") && (value.count == 1 || value[1] != UInt8(ascii: "/"))
    }

    /// Returns the number of a `Content-Length`; nil for anything but digits (RFC 9110 §8.6).
    static func length(_ value: [UInt8]) -> Int64? {
        guard (1...18).contains(value.count) else { return nil }
        var number: Int64 = 0
        for byte in value {
            guard byte >= 0x30, byte <= 0x39 else { return nil }
            number = number * 10 + Int64(byte - 0x30)
        }
        return number
    }

    /// Returns the lines of a head, with their line ends, without the blank line.
    static func lines(of head: [UInt8]) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var start = 0
        for index in head.indices.dropFirst() where head[index] == 0x0A && head[index - 1] == 0x0D {
            if index - start > 1 { lines.append(Array(head[start...index])) }
            start = index + 1
        }
        return lines
    }
}
