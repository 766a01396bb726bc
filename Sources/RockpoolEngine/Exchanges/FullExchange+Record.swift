// The record of an exchange of the full path, made from its trace (docs/architecture.md#journeys).
import HTTPTypes
import RockpoolCore

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
