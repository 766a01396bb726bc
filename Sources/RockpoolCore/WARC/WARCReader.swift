// Reads a WARC piece by piece: heads, blocks as they come, and the ends of records, within limits (ISO 28500:2017 §4).

/// The machine that cuts a WARC into records. It holds no more than one head.
package struct WARCReader: Sendable {
    /// What a WARC may hold; past it the file is refused.
    package struct Limits: Hashable, Sendable {
        /// All lines of one record's head together.
        package var headBytes = ByteCount.kib(64)
        /// Named fields of one head.
        package var fields = 128
        /// One block. Blocks are never held, but a length beyond all reason is a broken one.
        package var blockBytes = ByteCount.mb(1_000_000)

        /// The limits that serve when nothing else is said.
        package init() {}
    }

    /// What was found next.
    package enum Event: Hashable, Sendable {
        case head(WARCHead)
        /// The next bytes of the record's block, never empty.
        case block(ArraySlice<UInt8>)
        /// The record is whole.
        case end
    }

    private enum State: Hashable {
        case head([UInt8])
        case block(left: Int64)
        /// How many of the four bytes after a block have come.
        case gap(Int)
    }

    private let limits: Limits
    private var state = State.head([])
    /// Whole records so far.
    package private(set) var records = 0

    /// A reader at the start of a file.
    package init(limits: Limits = Limits()) { self.limits = limits }

    /// The record that is being read, counted from 1.
    package var current: Int { records + 1 }

    /// What the next bytes of the file hold; nil once all of `rest` is taken and more is needed.
    ///
    /// Throws at the first byte that no WARC has there.
    package mutating func next(in rest: inout ArraySlice<UInt8>) throws(WARCFault) -> Event? {
        while !rest.isEmpty {
            if let event = try step(&rest) { return event }
        }
        return nil
    }

    private mutating func step(_ rest: inout ArraySlice<UInt8>) throws(WARCFault) -> Event? {
        switch state {
        case .head(let begun):
            var bytes = begun
            // Taken out of the state, so that appending does not copy.
            state = .head([])
            guard let head = try takeHead(&rest, &bytes) else {
                state = .head(bytes)
                return nil
            }
            state = head.contentLength > 0 ? .block(left: head.contentLength) : .gap(0)
            return .head(head)
        case .block(let left):
            let part = rest.prefix(Int(clamping: left))
            rest = rest.dropFirst(part.count)
            state = left > Int64(part.count) ? .block(left: left - Int64(part.count)) : .gap(0)
            return .block(part)
        case .gap(let seen):
            guard rest.popFirst() == WARCHead.recordEnd[seen] else {
                throw fault("its block is not followed by two empty lines; is its Content-Length right?")
            }
            guard seen == WARCHead.recordEnd.count - 1 else {
                state = .gap(seen + 1)
                return nil
            }
            records += 1
            state = .head([])
            return .end
        }
    }

    /// Appends to `bytes` up to the empty line; the head once that is there.
    private func takeHead(_ rest: inout ArraySlice<UInt8>, _ bytes: inout [UInt8]) throws(WARCFault) -> WARCHead? {
        while let byte = rest.popFirst() {
            bytes.append(byte)
            if bytes.count <= Self.start.count, byte != Self.start[bytes.count - 1] {
                let isGzip = records == 0 && bytes.first == 0x1F
                throw fault(isGzip ? "the file is compressed; unpack it first (gunzip)" : "it does not start with WARC/1.")
            }
            guard Int64(bytes.count) <= limits.headBytes.bytes else { throw fault("its head is longer than \(limits.headBytes)") }
            if byte == 0x0A, bytes.suffix(4) == WARCHead.recordEnd[...] { return try head(of: bytes) }
        }
        return nil
    }

    private func head(of bytes: [UInt8]) throws(WARCFault) -> WARCHead {
        var lines: [ArraySlice<UInt8>] = []
        var rest = bytes.dropLast(2)
        while let feed = rest.firstIndex(of: 0x0A) {
            guard feed > rest.startIndex, rest[feed - 1] == 0x0D else { throw fault("a line of its head ends without CRLF") }
            lines.append(rest[rest.startIndex..<feed - 1])
            rest = rest[(feed + 1)...]
        }
        guard let version = lines.first, ["WARC/1.1", "WARC/1.0"].contains(where: { version.elementsEqual($0.utf8) }) else {
            throw fault("it is neither WARC/1.1 nor WARC/1.0")
        }
        guard lines.count - 1 <= limits.fields else { throw fault("its head has more than \(limits.fields) fields") }
        do throws(WARCHead.Malformed) {
            let head = try WARCHead(lines: lines.dropFirst())
            guard head.contentLength <= limits.blockBytes.bytes else { throw .init("its block is longer than \(limits.blockBytes)") }
            return head
        } catch {
            throw fault(error.reason)
        }
    }

    /// The file has ended. Throws when that is within a record, or before the first.
    package func finish() throws(WARCFault) {
        guard case .head(let begun) = state, begun.isEmpty else { throw fault("the file ends within it") }
        if records == 0 { throw fault("the file is empty") }
    }

    private static let start = Array("WARC/1.".utf8)

    private func fault(_ reason: String) -> WARCFault { WARCFault(record: current, reason: reason) }
}
