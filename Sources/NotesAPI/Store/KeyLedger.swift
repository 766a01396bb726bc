// The server's record of idempotency keys (draft-ietf-httpapi-idempotency-key-header §2; docs/outbox.md#keys).
import HTTPTypes
import RockpoolCore

/// The first response to each key.
struct KeyLedger: Sendable {
    enum Standing: Hashable {
        case new
        /// The first request with the key is still running.
        case running
        case answered(NotesReply)
        /// The key was used with a different request.
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

    /// Returns the state of a key; a new key is running from now on.
    mutating func begin(_ key: String, for request: NotesRequest, now: Timestamp, forgetsAfter: TimeSpan?) -> Standing {
        if let record = records[key], forgetsAfter.map({ now - record.usedAt < $0 }) ?? true {
            guard record.request == Fingerprint(request) else { return .reused }
            return record.reply.map { .answered($0) } ?? .running
        }
        records[key] = Record(request: Fingerprint(request), usedAt: now)
        return .new
    }

    /// Stores the response to the request with this key. A refusal is not stored: it changed nothing, and a retry may succeed.
    mutating func finish(_ key: String, with reply: NotesReply) {
        if reply.hasEffect { records[key]?.reply = reply } else { records[key] = nil }
    }

    mutating func forgetAll() { records = [:] }
}
