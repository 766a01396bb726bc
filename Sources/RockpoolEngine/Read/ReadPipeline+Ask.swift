// Sends a read upstream and applies its response: updates stored entries and decides about storage (RFC 9111 §3.4, §4.3).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Sends the request, with the question's conditions in place of the client's.
    /// - Parameter key: The key of the coalesced fetch that this request leads; the fetch leaves the table when storing has ended.
    func ask(_ question: Forwarding, _ context: inout RequestContext, leading key: FillKey? = nil) async -> FetchOutcome {
        let sentAt = now()
        let end: @Sendable () -> Void = { [fills] in if let key { fills.leave(key) } }
        do {
            let answer = try await fetch(
                question.head(of: context.request), context.outboundBody, for: &context, stored: question.found.map(\.response))
            if answer.head.status == 304, question.selected != nil, !question.completes {
                try? await answer.body.drain()
                if let entry = await freshened(question, by: answer.head, sentAt, context) {
                    end()
                    // `Set-Cookie` of a 304 goes to the requesting client and is never stored (RFC 9111 §7.3).
                    return .validated(entry, toWhoeverAsked: HTTPFields(answer.head.fields.filter { $0.name == .setCookie }))
                }
                // The 304 matches no stored entry, so the whole is requested.
                return await ask(question.anew, &context, leading: key)
            }
            if question.completes, answer.head.status == 206 || answer.head.status == 416 {
                return await complete(question, by: answer, sentAt, &context, leading: key, end: end)
            }
            if context.request.method == .head { await heed(head: answer, sentAt, question, context) }
            var known = knownAgain(context)
            let arrived = await keep(answer, sentAt, question, &known, end: end)
            context.trace = known.trace
            if !arrived.isSuspect { fetchWhole(after: answer.head, length: answer.length, question, context) }
            if arrived.stored == nil {
                if key != nil, arrived.isLastingRefusal { fills.note(uncollapsible: context.fillKey().base, now: now()) }
                end()
            }
            return .answered(arrived)
        } catch {
            end()
            return .failed(error)
        }
    }

    /// Returns the job under the identity that this response may have proved, so that it is stored in the partition where later lookups
    /// find it.
    private func knownAgain(_ context: RequestContext) -> RequestContext {
        var context = context
        context.identity = context.identity.principal.map { context.identity.folded(into: credentials.resolved($0)) } ?? context.identity
        return context
    }

    // MARK: 304

    /// Returns the entry selected by a 304, with its head updated (§4.3.4); nil if the 304 matches no stored entry.
    private func freshened(
        _ question: Forwarding, by notModified: ResponseHead, _ sentAt: Timestamp, _ context: RequestContext
    ) async -> CacheEntry? {
        let responses = question.found.map(\.response)
        guard let asked = question.selected,
            let selected = Revalidation.selected(responses, asked: asked, notModified: notModified)
        else { return nil }
        var entry = question.found[selected]
        entry.response = Revalidation.freshened(
            entry.response, by: notModified, request: selecting(context.request, among: responses), requestTime: sentAt, responseTime: now()
        )
        await replace(entry, context)
        return entry
    }

    /// Stores the entry's new head. If the new head forbids storing the entry in its partition, the entry is invalidated instead.
    private func replace(_ entry: CacheEntry, _ context: RequestContext) async {
        let partition = entry.key.partition
        do {
            guard mayUpdate(entry, with: entry.response.directives, context) else { return }
            if Revalidation.mayStay(entry.response, in: partition, rule: context.plan.store) {
                var response = entry.response
                response.isInvalidated = partition == .anonymous
                try await cache.freshen(entry, as: response, groups: CacheGroups.names(response.head.fields))
            } else {
                _ = try await cache.invalidate(urls: [entry.key.url])
            }
        } catch { logger.failed("cache freshen failed", error) }
    }

    /// True if a response to this request may change the entry: the response to a request with credentials changes a shared entry only if
    /// it is itself shareable (§3.5).
    private func mayUpdate(_ entry: CacheEntry, with directives: CacheControl, _ context: RequestContext) -> Bool {
        let hasCredentials = context.identity.partition != nil || context.request.fields.contains(.authorization)
        return entry.key.partition != .shared || !hasCredentials || Storability.isShareable(directives)
    }

    // MARK: HEAD

    /// Updates or invalidates the stored GET response after a response to HEAD (§4.3.5).
    private func heed(head answer: OriginReply, _ sentAt: Timestamp, _ question: Forwarding, _ context: RequestContext) async {
        let request = selecting(context.request, among: question.found.map(\.response))
        let entry = question.entry ?? question.found.first { Vary.matches(stored: $0.response, request: request) }
        guard let entry else { return }
        do {
            let outcome = Revalidation.head(
                entry.response, by: answer.head, length: answer.length, requestTime: sentAt, responseTime: now())
            switch outcome {
            case .freshened(let response):
                var entry = entry
                entry.response = response
                await replace(entry, context)
            case .outdated: _ = try await cache.invalidate(urls: [entry.key.url])
            case .unrelated: break
            }
        } catch { logger.failed("cache update failed", error) }
    }

    // MARK: the rest of a part

    /// Combines the stored beginning with the received rest (§3.4); sends a new request for the whole if they do not fit together.
    private func complete(
        _ question: Forwarding, by answer: OriginReply, _ sentAt: Timestamp, _ context: inout RequestContext, leading key: FillKey?,
        end: @escaping @Sendable () -> Void
    ) async -> FetchOutcome {
        if var completed = await completed(answer, sentAt, question, context, end: end) {
            context.trace.record(.stored)
            completed.fetchedStatus = 206
            return .answered(completed)
        }
        answer.body.abandon()
        return await ask(question.anew, &context, leading: key)
    }
}
