// An upstream's head, line by line: an accepted head that is written is parsed as the same head.
import HTTPTypes
import RockpoolCore

extension FuzzTarget {
    /// The lines of a response as received on the wire.
    static func responseHead(_ bytes: [UInt8]) throws(BrokenProperty) {
        var reader = ResponseHeadLines()
        var rest = bytes[...]
        while let feed = rest.firstIndex(of: 0x0A) {
            let line = Array(rest[...feed])
            rest = rest[(feed + 1)...]
            let head: ResponseHead?
            do throws(Refusal) {
                head = try reader.take(line)
            } catch {
                try hold(error.status == 502, "what an upstream does wrong is a 502")
                return try hold(error.detail.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }, "a refusal holds no control characters")
            }
            if let head { try isConsistent(head) }
        }
    }

    private static func isConsistent(_ head: ResponseHead) throws(BrokenProperty) {
        var block = HTTPBlock.bytes(of: head)[...]
        var reader = HTTPBlockHead(isRequest: false)
        let again = try? reader.take(from: &block)
        try hold(again == .response(head) && block.isEmpty, "a head that was read is read as the same again")
        for method in ["GET", "HEAD", "CONNECT"] {
            guard let framing = try? ResponseGate.check(status: head.status, fields: head.fields, requestMethod: method) else { continue }
            if case .length(let length) = framing { try hold((0...(1 << 53)).contains(length), "a body's length is within its limits") }
            if head.status == 204 || head.status == 304 || method == "HEAD" { try hold(framing == Framing.none, "there is no body") }
        }
    }
}
