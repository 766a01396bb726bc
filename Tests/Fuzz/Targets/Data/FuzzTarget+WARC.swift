// Bundles: the records do not depend on how the bytes arrive, and a record that is written is parsed as the same (ISO 28500:2017).
import RockpoolCore

extension FuzzTarget {
    /// One byte that determines the size of the pieces, then the file.
    static func warc(_ bytes: [UInt8]) throws(BrokenProperty) {
        guard let first = bytes.first else { return }
        let file = Array(bytes.dropFirst())
        let whole = Bundle(file, step: max(1, file.count))
        try hold(whole == Bundle(file, step: Int(first) % 16 + 1), "a bundle is the same however it arrives")
        for record in whole.records {
            try hold(Int64(record.block.count) <= record.head.contentLength, "a block is no longer than its head says")
            var rest = record.head.serialized[...]
            var reader = WARCReader()
            let again = try? reader.next(in: &rest)
            try hold(again == .head(record.head) && rest.isEmpty, "a record's head is read back")
            _ = record.head.date.map(RFC3339.format)
            if let digest = record.head[WARCHead.payloadDigest].flatMap({ PayloadDigest($0) }) {
                try hold(PayloadDigest(digest.text) == digest, "a digest is read back")
            }
            try message(record)
        }
    }

    private static func message(_ record: Bundle.Record) throws(BrokenProperty) {
        guard record.head.isHTTP else { return }
        var reader = HTTPBlockHead(isRequest: record.head.type == "request")
        var rest = record.block[...]
        guard case .response(let head)? = try? reader.take(from: &rest) else { return }
        var block = HTTPBlock.bytes(of: head)[...]
        var again = HTTPBlockHead(isRequest: false)
        try hold((try? again.take(from: &block)) == .response(head), "a response's head is read back")
    }

    private struct Bundle: Equatable {
        struct Record: Equatable {
            let head: WARCHead
            var block: [UInt8] = []
            var isWhole = false
        }

        var records: [Record] = []
        var fault: String?

        init(_ file: [UInt8], step: Int) {
            var reader = WARCReader()
            var start = 0
            do throws(WARCFault) {
                while start < file.count {
                    var piece = file[start..<min(start + step, file.count)]
                    start = piece.endIndex
                    while let event = try reader.next(in: &piece) { take(event) }
                }
                try reader.finish()
            } catch {
                fault = error.description
            }
        }

        private mutating func take(_ event: WARCReader.Event) {
            switch event {
            case .head(let head): records.append(Record(head: head))
            case .block(let part): records[records.count - 1].block += part
            case .end: records[records.count - 1].isWhole = true
            }
        }
    }
}
