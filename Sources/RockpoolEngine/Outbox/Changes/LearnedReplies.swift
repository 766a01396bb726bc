// What upstreams answer to writes where their answers carry nothing: the reply to the next one that is queued (docs/outbox.md#replies).
import HTTPTypes
import Logging
import RockpoolCore
import RockpoolStore
import Synchronization

/// Learns from the answers to live and replayed writes, and survives restarts.
final class LearnedReplies: Sendable {
    private let data: DataStore
    private let logger: Logger
    /// nil until they are read.
    private let known = Mutex<[String: EmptyAnswers]?>(nil)

    init(data: DataStore, logger: Logger) { (self.data, self.logger) = (data, logger) }

    /// Returns the status that the upstream answers to such a write; nil where its answers carry something, or are not known.
    func status(for route: WriteRoute, at upstream: String) async -> Int? {
        await load()
        return known.withLock { $0?[upstream]?.status(for: route) }
    }

    /// Takes an answer of the upstream itself.
    /// - Parameter isEmpty: true if it has no content.
    func note(_ answer: ResponseHead, isEmpty: Bool, to request: RequestHead, plan: RoutePlan, at upstream: String) async {
        guard let shown = EmptyAnswers.shown(by: answer, isEmpty: isEmpty, rule: plan.success) else { return }
        await load()
        let route = WriteRoute(of: request, plan: plan)
        let changes = known.withLock { $0?[upstream, default: EmptyAnswers()].note(shown, for: route) ?? [] }
        guard !changes.isEmpty else { return }
        do { try await data.keep(changes, upstream: upstream) } catch {
            logger.failed("an upstream's reply could not be stored; it is known until the next start", error: error)
        }
    }

    private func load() async {
        guard known.withLock({ $0 == nil }) else { return }
        var read: [String: EmptyAnswers] = [:]
        do {
            for reply in try await data.learnedReplies() {
                _ = read[reply.upstream, default: EmptyAnswers()].note(reply.status, for: reply.route)
            }
        } catch {
            logger.failed("the upstreams' replies could not be read", error: error)
        }
        known.withLock { [read] in if $0 == nil { $0 = read } }
    }
}

extension OutboxNotifier {
    /// Learns from the answer to a write that was delivered from the outbox.
    func learnReply(_ result: OperationResult, to operation: QueuedWrite) async {
        // A body that is too large, or came too slowly, is not at hand.
        let isEmpty = result.body.isEmpty && (result.head.fields[.contentLength] ?? "0") == "0"
        await replies.note(
            result.head, isEmpty: isEmpty, to: operation.request, plan: active.routes.plan(for: operation.request),
            at: operation.upstream)
    }
}

extension OriginReply {
    /// True if the answer has no content, false if it has some; nil if that is not known before its end.
    var isEmpty: Bool? {
        if head.status == 204 || head.status == 205 { return true }
        if let length { return length == 0 }
        if body.takeWhole(upTo: 0) != nil { return true }
        return head.fields.contains(.contentType) ? false : nil
    }
}
