// What the responses to a repeated request have in common, so that the next one can be passed on without parsing its fields
// (docs/architecture.md#relays).
package import HTTPTypes

/// The head of a response that the read pipeline has passed on, as a pattern for the heads that follow.
///
/// A head matches if it has the same lines in the same order, but for the values of `RelayFields.free`. The decision about a response that
/// says `no-store` does not depend on those, so the pipeline would pass on every response that matches, with the same fields added.
package struct RelayTemplate: Sendable {
    private enum Line: Equatable, Sendable {
        /// A line as it was received, with its line end.
        case fixed([UInt8])
        /// A line whose value may differ: its name in lower case, and what the value is about.
        case free([UInt8], RelayFields.Role)
    }

    /// What becomes of the responses.
    package enum Use: Sendable {
        /// They are passed on and never stored.
        case pass
        /// They are stored.
        case store
        /// They answer writes.
        case write
    }

    /// A part of each reply's head.
    package enum Part: Equatable, Sendable {
        /// Lines with their line ends.
        case lines([UInt8])
        /// One of the lines of the response, by its place in `Match.passed`.
        case passed(Int)
        /// `Date`, which the response has not.
        case date
    }

    private let lines: [Line]
    /// The fields of the response by its lines; nil for those that differ, and for the connection's.
    private let received: [HTTPField?]
    /// The fields of each reply in order, without the framing.
    package private(set) var parts: [Part] = []
    package let status: Int
    package let use: Use
    /// True for responses that end with their heads.
    package let isBodiless: Bool
    /// The fields in `parts` that are the same in each reply.
    package let fields: HTTPFields
    /// True if the bodies may have links that a gateway replaces.
    package let mayHaveLinks: Bool
    /// True if the bodies have a coding.
    package let isCoded: Bool
    /// True if the responses name a version.
    package let hasTag: Bool

    /// Nil if the responses to the request are not to be relayed: a status outside of 2xx, a stream of events, a field whose treatment depends
    /// on its value; where they are passed on, a status without a body, or no `no-store`; where they are stored, any status but 200.
    ///
    /// - Parameters:
    ///   - head: the head as it was received, with its blank line. The response gate has accepted it.
    ///   - reply: what the client received for it.
    package init?(of head: [UInt8], answeredBy reply: ResponseHead, for use: Use = .pass) {
        guard Self.isRelayed(reply, for: use), !StreamLimits.isStream(reply) else { return nil }
        var lines: [Line] = []
        var free: [(name: [UInt8], value: [UInt8])] = []
        var (isChunked, hasLength) = (false, false)
        for (index, line) in RelayFields.lines(of: head).enumerated() {
            if index == 0 {
                guard line.starts(with: Array("HTTP/1.1 ".utf8)) else { return nil }
                lines.append(.fixed(line))
                continue
            }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            let name = line[..<colon].map(FieldByte.lowercased)
            let value = Array(line[(colon + 1)..<(line.count - 2)].trimmingOWS())
            let role = RelayFields.role(of: name)
            switch role {
            case .location where use == .write && RelayFields.isPath(value), .free:
                lines.append(.free(name, role))
                free.append((name, value))
            case .fixed, .location: lines.append(.fixed(line))
            case .length:
                guard !hasLength, RelayFields.length(value) != nil else { return nil }
                hasLength = true
                lines.append(.free(name, role))
            case .coding:
                guard !isChunked, value.map(FieldByte.lowercased) == Array("chunked".utf8) else { return nil }
                isChunked = true
                lines.append(.fixed(line))
            case .connection:
                // The fields that a `Connection` names belong to this response's connection alone.
                let words = [RelayFields.close, RelayFields.keepAlive]
                guard name == RelayFields.keepAlive || words.contains(value.map(FieldByte.lowercased)) else { return nil }
                lines.append(.free(name, role))
            case .obstacle: return nil
            }
        }
        isBodiless = reply.status == 204
        guard isBodiless ? !isChunked && !hasLength : isChunked != hasLength else { return nil }
        self.lines = lines
        received = lines.map { line in
            guard case .fixed(let bytes) = line else { return nil }
            return try? ResponseGate.field(ofLine: bytes.dropLast(2))
        }
        (status, self.use) = (reply.status, use)
        fields = Self.shared(reply.fields.filter { field in !free.contains { $0.name == Array(field.name.canonicalName.utf8) } })
        (mayHaveLinks, isCoded) = (GatewayAddress.mayReplaceLinks(of: reply.fields), reply.fields.contains(.contentEncoding))
        hasTag = reply.fields.contains(.eTag)
        guard setParts(by: reply.fields, free: free) else { return nil }
    }

    /// True if `other` makes the same of the same responses.
    package func agrees(with other: RelayTemplate) -> Bool {
        status == other.status && use == other.use && lines == other.lines && parts == other.parts
    }

    /// Returns the fields of a reply that are the same in each.
    package static func shared(_ fields: some Sequence<HTTPField>) -> HTTPFields {
        HTTPFields(fields.filter { !RelayFields.isLeftOut($0.name) })
    }

    private static func isRelayed(_ reply: ResponseHead, for use: Use) -> Bool {
        guard (200...299).contains(reply.status), reply.status != 206 else { return false }
        return switch use {
        case .pass: reply.status != 204 && CacheControl(reply.fields).noStore
        case .store: reply.status == 200
        // The parts of a 207 may have failed. A response with a URL of its own may be stored (RFC 9110 §9.3.3).
        case .write: reply.status != 205 && reply.status != 207 && !reply.fields.contains(.contentLocation)
        }
    }

    /// Notes what each reply consists of.
    /// - Parameter free: the fields of the response whose values may differ.
    /// - Returns: false if the pipeline has treated one of them in its own way.
    private mutating func setParts(by reply: HTTPFields, free: [(name: [UInt8], value: [UInt8])]) -> Bool {
        var rest = Array(free.indices)
        for field in reply {
            let name = Array(field.name.canonicalName.utf8)
            switch RelayFields.role(of: name) {
            case .length, .coding, .connection: break
            case .location where !free.contains(where: { $0.name == name }), .fixed, .obstacle:
                let line = Array(field.name.rawName.utf8) + [0x3A, 0x20] + field.valueBytes + [0x0D, 0x0A]
                if case .lines(let lines)? = parts.last {
                    parts[parts.count - 1] = .lines(lines + line)
                } else {
                    parts.append(.lines(line))
                }
            case .free, .location:
                if let place = rest.firstIndex(where: { free[$0].name == name }) {
                    guard free[rest[place]].value == field.valueBytes else { return false }
                    parts.append(.passed(rest.remove(at: place)))
                } else {
                    guard field.name == .date else { return false }
                    parts.append(.date)
                }
            }
        }
        return rest.isEmpty
    }

    /// A head that matches.
    package struct Match: Sendable {
        /// Bytes of the head, with its blank line.
        package fileprivate(set) var headLength = 0
        /// The declared length of the body; nil for the chunked coding.
        package fileprivate(set) var length: Int64?
        /// True if the connection ends with the response.
        package fileprivate(set) var closes = false
        /// The lines that the client receives as they are, with their line ends.
        package fileprivate(set) var passed: [Range<Int>] = []
    }

    /// Returns the end-to-end fields of a head that matches, as the upstream has sent them; nil if one of them is invalid.
    package func fields(of match: Match, in bytes: Span<UInt8>) -> HTTPFields? {
        var fields = HTTPFields()
        var passed = match.passed[...]
        for (line, field) in zip(lines, received) {
            switch line {
            case .fixed: if let field { fields.append(field) }
            case .free(_, .length): fields.append(HTTPField(name: .contentLength, value: "\(match.length ?? 0)"))
            case .free(_, .free), .free(_, .location):
                guard let range = passed.popFirst(), let field = try? ResponseGate.field(ofLine: Self.line(bytes, range)) else {
                    return nil
                }
                fields.append(field)
            case .free: break
            }
        }
        return fields
    }

    /// A line without its end.
    private static func line(_ bytes: Span<UInt8>, _ range: Range<Int>) -> ArraySlice<UInt8> { range.dropLast(2).map { bytes[$0] }[...] }

    package enum Result: Sendable {
        case matches(Match)
        /// More bytes are needed.
        case incomplete
        case differs
    }

    /// Compares the head at the start of `bytes`.
    package func compare(_ bytes: Span<UInt8>) -> Result {
        var match = Match()
        var place = 0
        for line in lines {
            switch line {
            case .fixed(let expected):
                let available = min(expected.count, bytes.count - place)
                for index in 0..<available where bytes[place + index] != expected[index] { return .differs }
                guard available == expected.count else { return .incomplete }
                place += available
            case .free(let name, let role):
                let start = place
                let available = min(name.count, bytes.count - place)
                for index in 0..<available where FieldByte.lowercased(bytes[place + index]) != name[index] { return .differs }
                guard bytes.count - place > name.count else { return .incomplete }
                guard bytes[place + name.count] == UInt8(ascii: ":") else { return .differs }
                place += name.count + 1
                let value = place
                while place < bytes.count, FieldByte.isValue(bytes[place]) { place += 1 }
                guard bytes.count - place >= 2 else { return .incomplete }
                guard bytes[place] == 0x0D, bytes[place + 1] == 0x0A, take(bytes, value..<place, of: name, as: role, into: &match)
                else { return .differs }
                place += 2
                if role == .free || role == .location { match.passed.append(start..<place) }
            }
        }
        guard bytes.count - place >= 2 else { return .incomplete }
        guard bytes[place] == 0x0D, bytes[place + 1] == 0x0A else { return .differs }
        match.headLength = place + 2
        return .matches(match)
    }

    /// Evaluates a value that concerns the framing or the connection; false if it is not a usual one.
    private func take(
        _ bytes: Span<UInt8>, _ range: Range<Int>, of name: [UInt8], as role: RelayFields.Role, into match: inout Match
    ) -> Bool {
        switch role {
        case .length:
            match.length = RelayFields.length(Array(range.map { bytes[$0] }[...].trimmingOWS()))
            return match.length != nil
        case .connection where name != RelayFields.keepAlive:
            let value = Array(range.map { FieldByte.lowercased(bytes[$0]) }[...].trimmingOWS())
            match.closes = value == RelayFields.close
            return match.closes || value == RelayFields.keepAlive
        case .location: return RelayFields.isPath(Array(range.map { bytes[$0] }[...].trimmingOWS()))
        default: return true
        }
    }
}

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
