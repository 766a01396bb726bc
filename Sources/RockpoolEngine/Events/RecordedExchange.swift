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

/// The record of an exchange of the full path, made from its trace (docs/architecture.md#journeys).
extension RecordedExchange.FullExchange {
    /// True for a failure, a refusal or a queued write, which are recorded above the usual rate too.
    var isNotable: Bool { response.status >= 400 || end.error != nil || [.queued, .refused, .failed].contains(trace.verdict) }

    /// The exchange as it may be kept: without the secrets of its client, and without the fields of a long head.
    var kept: Self {
        var kept = self
        kept.principal = trace.identity?.principal
        kept.request = RecordedExchange.Content.kept(request, of: trace.identity)
        kept.response.fields = RecordedExchange.Content.kept(response.fields, of: nil)
        kept.trace.identity = nil
        return kept
    }

    /// Returns the record for readers.
    func record(id: String, at moment: Timestamp) -> ExchangeRecord {
        var record = ExchangeRecord(
            id: id, at: moment, method: trace.method, url: trace.url, status: response.status, verdict: trace.verdict.rawValue,
            requestFields: request, responseFields: response.fields)
        record.client = principal
        record.cacheStatus = trace.cacheStatus?.fieldValue
        record.error = end.error ?? trace.proxyStatus?.error.rawValue
        (record.bytes, record.headAfter, record.endAfter) = (end.bytes, head.microseconds, whole.microseconds)
        var reasons: [String] = []
        for entry in trace.entries {
            let (name, detail) = entry.step.words
            record.steps.append(ExchangeRecord.Step(name, detail, after: max(0, (entry.at - began).microseconds)))
            if let clock = entry.transfer { record.timings = clock.timings }
            switch entry.step {
            case .routed(let upstream, let category, _): (record.upstream, record.category) = (upstream, category)
            case .decided, .failed: reasons.append(detail)
            case .notStored: reasons.append("not stored: " + detail)
            case .refused: reasons.append("refused: " + detail)
            case .enqueued(let operation):
                (record.operation, record.next) = (operation, "rockpool outbox show \(operation)")
                reasons.append("queued")
            case .looked, .fetched, .stored: break
            }
        }
        record.why = reasons.joined(separator: "; ")
        return record
    }
}

extension Trace.Step {
    /// The step's name and its result in words.
    fileprivate var words: (name: String, detail: String) {
        switch self {
        case .routed(let upstream, let category, let strategy):
            ("routed", "\(upstream ?? "an undeclared host"), category \(category ?? "none"), strategy \(strategy.rawValue)")
        case .looked(let candidates): ("looked", candidates.counted("stored response"))
        case .decided(let words): ("decided", words)
        case .fetched(let status): ("fetched", "status \(status)")
        case .failed(let failure):
            ("failed", failure.detail.isEmpty ? failure.proxyErrorName : "\(failure.proxyErrorName): \(failure.detail)")
        case .stored: ("stored", "")
        case .notStored(let reason): ("notStored", reason)
        case .enqueued(let operation): ("enqueued", operation)
        case .refused(let problem): ("refused", problem)
        }
    }
}
