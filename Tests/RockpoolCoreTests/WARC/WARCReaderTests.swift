// Bundles split into records: incrementally, within limits, and rejected at the first invalid record (ISO 28500:2017 §4).
import RockpoolCore
import Testing

/// Returns one record as text.
private func record(
    _ block: String = "", type: String = "resource", length: Int? = nil, version: String = "WARC/1.1", more: String = ""
)
    -> String
{
    "\(version)\r\nWARC-Type: \(type)\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n\(more)"
        + "Content-Length: \(length ?? block.utf8.count)\r\n\r\n\(block)\r\n\r\n"
}

@Suite struct WARCReaderTests {
    /// Returns the types, the reassembled blocks, and the error that ended the reading.
    private func read(_ text: String, step: Int = .max, limits: WARCReader.Limits = .init()) -> (found: [String], fault: WARCFault?) {
        var reader = WARCReader(limits: limits)
        var (found, block): ([String], [UInt8]) = ([], [])
        do throws(WARCFault) {
            var bytes = Array(text.utf8)[...]
            while !bytes.isEmpty {
                var part = bytes.prefix(step)
                bytes = bytes.dropFirst(part.count)
                while let event = try reader.next(in: &part) {
                    switch event {
                    case .head(let head): found.append(head.type)
                    case .block(let piece): block += piece
                    case .end:
                        found.append(String(decoding: block, as: UTF8.self))
                        block = []
                    }
                }
            }
            try reader.finish()
            return (found, nil)
        } catch {
            return (found, error)
        }
    }

    @Test(arguments: [1, 2, 3, 7, 64, 100_000]) func theSameInWhateverPiecesItComes(step: Int) {
        let text = record("pearl\r\n\r\nWARC/1.1\r\n", type: "Response") + record() + record("x", version: "WARC/1.0")
        let (found, fault) = read(text, step: step)
        #expect(found == ["response", "pearl\r\n\r\nWARC/1.1\r\n", "resource", "", "resource", "x"] && fault == nil)
    }

    static let faults: [(String, Int, String)] = [
        ("", 1, "the file is empty"),
        ("GET / HTTP/1.1\r\n\r\n", 1, "it does not start with WARC/1."),
        ("\u{1F}\u{8B}", 1, "the file is compressed; unpack it first (gunzip)"),
        ("WARC/1.7\r\nA: b\r\n\r\n", 1, "it is neither WARC/1.1 nor WARC/1.0"),
        ("WARC/1.1\r\nWARC-Type: a\r\nWARC-Record-ID: b\r\nWARC-Date: c\r\n\r\n", 1, "Content-Length is missing"),
        (record(more: "WARC-Type: again\r\n"), 1, "WARC-Type is there more than once"),
        (record(more: "content-length: 0\r\n"), 1, "Content-Length is there more than once"),
        (record(more: "no field\r\n"), 1, "a line of its head is no named field"),
        (record(more: " folded: x\r\n"), 1, "a line of its head is no named field"),
        (record(more: "A: b\u{0}c\r\n"), 1, "a field of its head holds a control character"),
        (record(more: "A: b\n"), 1, "a line of its head ends without CRLF"),
        (record("x") + record("pearl", length: 3), 2, "its block is not followed by two empty lines; is its Content-Length right?"),
        (record("x") + record("pearl", length: 9999), 2, "the file ends within it"),
        (record("x", length: -1), 1, "its Content-Length is not a number"),
        (record("x").replacing("Content-Length: 1", with: "Content-Length: 99999999999999999999"), 1, "its Content-Length is not a number"),
        (record("x", length: 999_999_999_999_999_999), 1, "its block is longer than 1 TB"),
        (record("x") + record() + "WARC/1.1\r\nWARC-", 3, "the file ends within it"),
    ]

    @Test(arguments: faults) func oneSentenceAndTheRecord(text: String, record: Int, reason: String) {
        #expect(read(text, step: 5).fault == WARCFault(record: record, reason: reason))
    }

    @Test func whatCameBeforeAFaultIsFoundFirst() {
        let (found, fault) = read(record("kept") + "nonsense")
        #expect(found == ["resource", "kept"] && fault?.description == "record 2: it does not start with WARC/1.")
    }

    @Test func headsAreBounded() {
        var limits = WARCReader.Limits()
        let text = record("x")
        limits.headBytes = ByteCount(Int64(text.utf8.count - 5))
        #expect(read(text, limits: limits).fault == nil)
        limits.headBytes -= ByteCount(1)
        #expect(read(text, limits: limits).fault?.reason.hasPrefix("its head is longer than") == true)
        limits = WARCReader.Limits()
        limits.fields = 4
        #expect(read(text, limits: limits).fault == nil)
        limits.fields = 3
        #expect(read(text, limits: limits).fault?.reason == "its head has more than 3 fields")
        limits = WARCReader.Limits()
        limits.blockBytes = ByteCount(1)
        #expect(read(text, limits: limits).fault == nil && read(record("xy"), limits: limits).fault != nil)
    }

    @Test func aWrittenHeadIsReadBack() throws {
        let written = WARCHead(
            type: "response", id: "7", date: Timestamp(milliseconds: 1_767_225_600_123), contentLength: 2,
            [
                WARCHead.targetURI: "https://a.test/x?y=z:1", "Rockpool-Absent": nil,
                WARCHead.contentType: "application/http; msgtype=response",
            ])
        var reader = WARCReader()
        var bytes = written.serialized[...]
        guard case .head(let read) = try reader.next(in: &bytes) else {
            Issue.record("expected a record head")
            return
        }
        #expect(read == written && read.isHTTP && read.contentLength == 2 && read["rockpool-absent"] == nil)
        #expect(read.date == Timestamp(milliseconds: 1_767_225_600_123) && read.targetURI == "https://a.test/x?y=z:1")
        #expect(read[WARCHead.recordID] == "<urn:uuid:7>")
    }

    @Test func anOlderWritersURLLosesItsBrackets() throws {
        var reader = WARCReader()
        var bytes = Array(record(more: "WARC-Target-URI: <http://a.test/>\r\n").utf8)[...]
        guard case .head(let head) = try reader.next(in: &bytes) else {
            Issue.record("expected a record head")
            return
        }
        #expect(head.targetURI == "http://a.test/")
    }
}
