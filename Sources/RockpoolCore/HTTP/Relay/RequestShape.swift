// What a decision about a plain request looks at: requests that agree in it are treated alike, whatever else they carry
// (docs/architecture.md#relays).

/// The parts of a plain request that its treatment depends on, but for the facts that are looked up for each: the listener and whether the client
/// is local, `Host`, and the lines that are not `PlainLines.Kind.free`.
package struct RequestShape: Hashable, Sendable {
    /// Where a request came in.
    package struct Arrival: Sendable {
        let listener: String
        let isLocalClient: Bool

        package init(listener: String, isLocalClient: Bool) { (self.listener, self.isLocalClient) = (listener, isLocalClient) }
    }

    private var bytes: [UInt8] = []

    /// A read. Its credential counts by the names of its fields.
    /// - Parameter path: where path and query lie, if any target may take their place; nil if the target counts.
    package init(of request: FastPathRequest, in bytes: Span<UInt8>, at arrival: Arrival, path: Range<Int>?) {
        let target = path.map { request.target.lowerBound..<$0.lowerBound } ?? request.target
        self.init(at: arrival, [target, request.host], request.lines, in: bytes, countsCredentials: false)
    }

    /// A write, with its target and its credential.
    package init(of write: PlainWrite, in bytes: Span<UInt8>, at arrival: Arrival) {
        self.init(at: arrival, [write.method, write.target, write.host], write.lines, in: bytes, countsCredentials: true)
    }

    private init(at arrival: Arrival, _ parts: [Range<Int>], _ lines: PlainLines, in bytes: Span<UInt8>, countsCredentials: Bool) {
        self.bytes.reserveCapacity(256)
        self.bytes.append(arrival.isLocalClient ? 1 : 0)
        self.bytes += arrival.listener.utf8
        for part in parts {
            self.bytes.append(0x0A)
            self.bytes.append(bytes, part)
        }
        for index in 0..<lines.count {
            switch lines.kind(at: index) {
            case .free: continue
            case .credential where !countsCredentials:
                self.bytes.append(0x0A)
                self.bytes.append(bytes, lines.name(at: index))
            case .read, .credential:
                self.bytes.append(0x0A)
                self.bytes.append(bytes, lines.whole(at: index))
            }
        }
    }
}

extension FastPathRequest {
    /// Where path and query lie; nil for a path of Rockpool's own, and where the target is none of a resource.
    package func path(in bytes: Span<UInt8>) -> Range<Int>? {
        var start = target.lowerBound
        if bytes[start] != UInt8(ascii: "/") {
            // The absolute form: the path follows the authority.
            start += Self.scheme.count
            while start < target.upperBound, bytes[start] != UInt8(ascii: "/"), bytes[start] != UInt8(ascii: "?") { start += 1 }
            guard start < target.upperBound, bytes[start] == UInt8(ascii: "/") else { return nil }
        }
        let path = start..<target.upperBound
        return path.count >= Self.own.count && PlainFields.isEqual(bytes, at: start, to: Self.own) ? nil : path
    }

    private static let scheme = Array("http://".utf8)
    private static let own = Array(RequestTarget.ownPath.utf8)

    /// True for a request for a part, or on a condition.
    package var isPartial: Bool { !ifNoneMatch.isEmpty || !ifModifiedSince.isEmpty || !range.isEmpty }
}

/// How the field lines of a request become those that are sent: each line that the decision looked at is replaced by what was sent for it, and
/// all others are passed on in their order, byte for byte.
package struct OutboundLines: Sendable {
    /// What is sent in the place of each line that the decision looked at, in their order.
    private let read: [[UInt8]]
    private let after: [UInt8]

    /// Nil if a line that decisions do not look at was not passed on as it was.
    /// - Parameters:
    ///   - lines: of a request.
    ///   - sent: the lines that were sent for it, with their ends, without `Host`.
    package init?(_ lines: PlainLines, in bytes: Span<UInt8>, sent: [[UInt8]]) {
        var (read, rest) = ([[UInt8]](), sent[...])
        for index in 0..<lines.count {
            let isSent = rest.first.map { PlainFields.isExactly(bytes, at: lines.whole(at: index), $0) } ?? false
            switch lines.kind(at: index) {
            case .read:
                let name = lines.name(at: index)
                let isReplaced = rest.first.map {
                    $0.count > name.count && $0[name.count] == UInt8(ascii: ":") && bytes.extracting(name).isName($0)
                }
                read.append(isSent || isReplaced == true ? rest.removeFirst() : [])
            case .free, .credential:
                guard isSent else { return nil }
                rest.removeFirst()
            }
        }
        self.read = read
        after = rest.flatMap(\.self)
    }

    /// Appends the lines that are sent for a request of the same shape.
    package func write(_ lines: PlainLines, in bytes: Span<UInt8>, to out: inout [UInt8]) {
        var place = 0
        for index in 0..<lines.count {
            guard lines.kind(at: index) == .read else {
                out.append(bytes, lines.whole(at: index))
                continue
            }
            if place < read.count { out += read[place] }
            place += 1
        }
        out += after
    }
}

extension Span<UInt8> {
    /// True if these bytes are the beginning of `line`, in any case.
    fileprivate func isName(_ line: [UInt8]) -> Bool {
        for index in indices where FieldByte.lowercased(self[index]) != FieldByte.lowercased(line[index]) { return false }
        return true
    }
}

extension [UInt8] {
    /// Appends a part of `bytes`.
    mutating func append(_ bytes: Span<UInt8>, _ range: Range<Int>) {
        unsafe bytes.extracting(range).withUnsafeBytes { part in unsafe append(contentsOf: part) }
    }
}
