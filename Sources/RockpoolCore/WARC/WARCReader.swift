// Parses a WARC file in pieces: heads, blocks as they arrive, and record ends, within limits (ISO 28500:2017 §4).

/// The state machine that splits a WARC file into records; buffers at most one head.
package struct WARCReader: Sendable {
    /// The limits of a WARC file; a file beyond them is rejected.
    package struct Limits: Hashable, Sendable {
        /// Bytes of all lines of one record's head.
        package var headBytes = ByteCount.kib(64)
        /// Named fields of one head.
        package var fields = 128
        /// Bytes of one block. Blocks are never buffered, but an implausible length indicates a broken record.
        package var blockBytes = ByteCount.mb(1_000_000)

        /// The default limits.
        package init() {}
    }

    /// The next parsed element.
    package enum Event: Hashable, Sendable {
        case head(WARCHead)
        /// The next bytes of the record's block, never empty.
        case block(ArraySlice<UInt8>)
        /// The record is complete.
        case end
    }

    private enum State: Hashable {
        case head([UInt8])
        case block(left: Int64)
        /// The number of bytes received of the four after a block.
        case gap(Int)
    }

    private let limits: Limits
    private var state = State.head([])
    /// Complete records so far.
    package private(set) var records = 0

    /// A parser at the start of a file.
    package init(limits: Limits = Limits()) { self.limits = limits }

    /// The number of the current record, counted from 1.
    package var current: Int { records + 1 }

    /// The next element of the file; nil once all of `rest` is consumed and more bytes are needed.
    ///
    /// Throws at the first byte that WARC does not allow there.
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
            // Moved out of the state, so that appending does not copy.
            state = .head([])
            guard let head = try takeHead(from: &rest, bytes: &bytes) else {
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

    /// Appends to `bytes` up to the empty line; returns the head once it is complete.
    private func takeHead(from rest: inout ArraySlice<UInt8>, bytes: inout [UInt8]) throws(WARCFault) -> WARCHead? {
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

    /// Called at the end of the file. Throws if it is within a record, or before the first.
    package func finish() throws(WARCFault) {
        guard case .head(let begun) = state, begun.isEmpty else { throw fault("the file ends within it") }
        if records == 0 { throw fault("the file is empty") }
    }

    private static let start = Array("WARC/1.".utf8)

    private func fault(_ reason: String) -> WARCFault { WARCFault(record: current, reason: reason) }
}
