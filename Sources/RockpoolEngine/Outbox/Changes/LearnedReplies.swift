// What upstreams answer to writes: the form of the reply to the next one that is queued (docs/outbox.md#replies).
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

    /// Returns the form in which the upstream answers such a write; nil where that is not known, or cannot be repeated.
    func form(for route: WriteRoute, at upstream: String) async -> AnswerForm? {
        await load()
        return known.withLock { $0?[upstream]?.form(for: route) }
    }

    /// Takes an answer of the upstream itself to a write of no declared resource.
    /// - Parameter isEmpty: true if it has no content.
    func note(_ answer: ResponseHead, isEmpty: Bool, to request: RequestHead, plan: RoutePlan, at upstream: String) async {
        guard plan.entity?.resource == nil, isEmpty || !plan.isTelemetry,
            let shown = EmptyAnswers.shown(by: answer, isEmpty: isEmpty, rule: plan.success)
        else { return }
        await note(shown.map { AnswerForm(status: $0) }, for: WriteRoute(of: request, plan: plan), at: upstream)
    }

    /// Takes an answer to a write of a declared resource.
    func note(_ write: AnsweredWrite, plan: RoutePlan) async {
        if plan.isTelemetry, let body = write.answerBody, let upstream = plan.upstream?.name, (200...299).contains(write.answer.status) {
            return await note(
                AnswerForm(telemetry: write.answer, body: body), for: WriteRoute(of: write.request, plan: plan), at: upstream)
        }
        guard plan.entity?.resource != nil, let upstream = plan.upstream?.name, write.evidence == .answer, write.outcome == .applied else {
            return
        }
        var write = write
        write.entity = plan.entity
        let isUnread = write.answerBody == nil && ![204, 205].contains(write.answer.status) && write.answer.fields[.contentLength] != "0"
        // A body that was passed on without being read shows nothing.
        if isUnread, [200, 201].contains(write.answer.status), MediaType.isJSON(write.answer.fields) { return }
        if isUnread { write.answerBody = nil } else if write.answerBody == nil { write.answerBody = [] }
        await note(AnswerForm(write), for: WriteRoute(of: write.request, plan: plan), at: upstream)
    }

    private func note(_ form: AnswerForm?, for route: WriteRoute, at upstream: String) async {
        await load()
        let changes = known.withLock { $0?[upstream, default: EmptyAnswers()].note(form, for: route) ?? [] }
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
                _ = read[reply.upstream, default: EmptyAnswers()].note(reply.form, for: reply.route)
            }
        } catch {
            logger.failed("the upstreams' replies could not be read", error: error)
        }
        known.withLock { [read] in if $0 == nil { $0 = read } }
    }
}

extension OutboxNotifier {
    /// Learns from the answer to a write that was delivered from the outbox.
    func learnReply(_ write: AnsweredWrite, to operation: QueuedWrite) async {
        guard write.evidence == .answer else { return }
        let plan = active.routes.plan(for: write.request)
        guard plan.entity?.resource == nil else { return await replies.note(write, plan: plan) }
        if plan.isTelemetry, write.answerBody?.isEmpty == false { return await replies.note(write, plan: plan) }
        // A body that is too large, or came too slowly, is not at hand.
        let isEmpty = write.answerBody?.isEmpty != false && (write.answer.fields[.contentLength] ?? "0") == "0"
        await replies.note(
            write.answer, isEmpty: isEmpty, to: operation.request, plan: active.routes.plan(for: operation.request), at: operation.upstream)
    }
}
