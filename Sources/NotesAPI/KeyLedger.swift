// What the server remembers of idempotency keys (draft-ietf-httpapi-idempotency-key-header §2; outbox.md §2.1).
import HTTPTypes
import RockpoolCore

/// The first answer given to each key.
struct KeyLedger: Sendable {
    enum Standing: Hashable {
        case new
        /// Its first request still runs.
        case running
        case answered(NotesReply)
        /// It was used with another request.
        case reused
    }

    private struct Record {
        var request: Fingerprint
        var usedAt: Timestamp
        var reply: NotesReply?
    }

    private struct Fingerprint: Hashable {
        var method: String
        var target: String
        var body: [UInt8]

        init(_ request: NotesRequest) {
            method = request.method.rawValue
            target = request.target
            body = request.body
        }
    }

    private var records: [String: Record] = [:]

    /// Where a key stands; a new one is running from now on.
    mutating func begin(_ key: String, for request: NotesRequest, now: Timestamp, forgetsAfter: TimeSpan?) -> Standing {
        if let record = records[key], forgetsAfter.map({ now - record.usedAt < $0 }) ?? true {
            guard record.request == Fingerprint(request) else { return .reused }
            return record.reply.map { .answered($0) } ?? .running
        }
        records[key] = Record(request: Fingerprint(request), usedAt: now)
        return .new
    }

    /// The request with this key has been carried out. A refusal is not kept: it changed nothing, and may succeed next time.
    mutating func finish(_ key: String, with reply: NotesReply) {
        if reply.hasEffect { records[key]?.reply = reply } else { records[key] = nil }
    }

    mutating func forgetAll() { records = [:] }
}
