// One record of the ring as it was made, and its form for readers (docs/reference/admin-api.md#requests).
import HTTPTypes
package import RockpoolCore
package import RockpoolStore

/// A record of the ring. Formatting it costs the reader, not the exchange.
package final class RecordedExchange: Sendable {
    /// What is known of an exchange.
    package enum Content: Sendable {
        /// An exchange of the full path, without the secrets of its client.
        case full(FullExchange)
        /// A reply that was sent without the pipeline.
        case hot(HotNote, HotReader, isHead: Bool, bytes: Int, took: Duration)
        /// A tunnel that was passed on unread.
        case tunnel(TunnelRecord)
        /// A queued write that has ended or needs a person.
        case operation(QueuedWrite, why: String)
    }

    /// An exchange of the full path.
    package struct FullExchange: Sendable {
        var trace: Trace
        var principal: String?
        var request: HTTPFields
        var response: ResponseHead
        let end: ReplyEnd
        let began: ContinuousClock.Instant
        let head: Duration
        let whole: Duration
    }

    package let number: UInt64
    package let at: Timestamp
    let represents: Int
    /// Estimated size in bytes.
    let cost: Int
    private let content: Content

    init(number: UInt64, at: Timestamp, represents: Int, cost: Int, content: Content) {
        (self.number, self.at, self.represents, self.cost, self.content) = (number, at, represents, cost, content)
    }

    /// Returns the record for readers.
    /// - Parameter epoch: the first part of its id.
    func record(in epoch: String) -> ExchangeRecord {
        let id = "\(epoch)-\(number)"
        var record: ExchangeRecord
        switch content {
        case .full(let full): record = full.record(id: id, at: at)
        case .hot(let note, let reader, let isHead, let bytes, let took):
            record = ExchangeRecord(
                id: id, at: at, method: isHead ? "HEAD" : "GET", url: note.url, status: note.status,
                verdict: (note.isStale ? Trace.Verdict.stale : .hit).rawValue, requestFields: reader.request, responseFields: note.response)
            (record.client, record.upstream, record.category) = (reader.principal, note.upstream, note.category)
            (record.cacheStatus, record.error, record.bytes) = (note.cacheStatus.fieldValue, note.error, Int64(bytes))
            record.why = "kept ready in memory" + (note.cacheStatus.detail.map { ", \($0)" } ?? "")
            record.headAfter = took.microseconds
            record.endAfter = took.microseconds
            record.steps = [ExchangeRecord.Step("looked", "a reply kept ready in memory", after: took.microseconds)]
        case .tunnel(let tunnel):
            record = ExchangeRecord(
                id: id, at: at, method: "CONNECT", url: "\(tunnel.host):\(tunnel.port)", status: tunnel.failure?.status ?? 200,
                verdict: tunnel.verdict)
            if case .declared(let name) = tunnel.reason { record.upstream = name }
            (record.why, record.next, record.bytes) = (tunnel.why, tunnel.next, tunnel.received)
            (record.headAfter, record.endAfter) = (tunnel.took.microseconds, tunnel.took.microseconds)
        case .operation(let write, let why):
            record = ExchangeRecord(
                id: id, at: at, method: write.request.method.rawValue, url: write.request.url, status: write.result?.head.status ?? 0,
                verdict: write.state.rawValue, requestFields: write.request.fields, responseFields: write.result?.head.fields ?? [:])
            (record.client, record.upstream, record.operation) = (write.principal, write.upstream, write.id)
            (record.error, record.why) = (write.lastError, why)
            record.next =
                write.state == .delivered ? nil : "rockpool \(write.state == .conflicted ? "conflicts ls" : "outbox show \(write.id)")"
        }
        record.represents = represents
        return record
    }
}

extension RecordedExchange.Content {
    /// Longer heads are recorded without their fields.
    private static let fieldLimit = Int.kib(8)
    /// The size of a record without texts.
    private static let base = 600

    /// Estimated size in bytes.
    var cost: Int {
        switch self {
        case .full(let full): Self.base + full.trace.url.utf8.count + full.request.size + full.response.fields.size
        // Records of one message share their note, and it may be the last one that holds it.
        case .hot(let note, let reader, _, _, _): Self.base + note.size + reader.request.size
        case .tunnel(let tunnel): Self.base + tunnel.host.utf8.count + (tunnel.failure?.detail.utf8.count ?? 0)
        case .operation(let write, let why):
            Self.base + write.request.target.utf8.count + write.request.fields.size + why.utf8.count
        }
    }

    /// Returns the fields as they are recorded: without secrets, and none of a long head.
    static func kept(_ fields: HTTPFields, of identity: Identity?) -> HTTPFields {
        guard fields.size <= fieldLimit else { return [:] }
        let isSecret = { (name: HTTPField.Name) in
            SecretFields.contains(name) || identity.map { $0.secrets.contains(name) || $0.signature.contains(name) } == true
        }
        return fields.contains { isSecret($0.name) } ? HTTPFields(fields.filter { !isSecret($0.name) }) : fields
    }
}

extension Duration {
    /// Whole microseconds.
    var microseconds: Int64 { Int64(clamping: Int64(self / .microseconds(1))) }
}
