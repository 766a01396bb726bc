// The effects of deliveries that come from the outbox, not from an attempt under way (docs/outbox.md#effects).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

/// Works deliveries of the last run, or of another node, into the copies of their clients.
struct DeliveryEffects: Sendable {
    let data: DataStore
    let outbound: OutboundWrites
    let effects: OwnWriteEffects

    /// Works a delivery into the copies, if none shows it.
    /// - Parameter before: called with the answer and the request as it was sent.
    func note(_ operation: QueuedWrite, before: (ResponseHead, RequestHead) async -> Void = { _, _ in }) async {
        guard let ended = operation.ended, let endedAt = operation.endedAt, let bare = try? await outbound.bare(operation) else { return }
        var answer = operation.result?.head ?? ResponseHead(status: 204)
        await before(answer, bare.head)
        // A write that was found at the upstream has no answer; that of a create names the created item.
        if let item = operation.newItem, !answer.fields.contains(.location) {
            answer.status = 201
            let resource = outbound.active.routes.plan(for: bare.head).entity?.resource
            answer.fields[.location] =
                switch item {
                case .local(let id): data.localIDs.mapping(of: id)?.url
                case .chosen(let key): ServerID(text: key).target(in: bare.head, resource: resource)
                }
        }
        let write = AnsweredWrite(
            request: bare.head, body: Array(bare.body), answer: answer, answerBody: operation.result?.body ?? [])
        guard await effects.lacks(write, partition: operation.principal, endedAt: ended) else {
            return await effects.markLists(of: write, partition: operation.principal, olderThan: ended)
        }
        await effects.note(
            write, by: operation.writer, sentAt: Moment(at: operation.firstSentAt ?? endedAt, tick: operation.begun ?? ended))
    }
}

extension [QueuedWrite] {
    /// The operations in the order in which they ended.
    var byEnd: [QueuedWrite] {
        sorted { ($0.ended ?? .first, $0.sequence) < ($1.ended ?? .first, $1.sequence) }
    }
}

/// Repeats the effects of the last deliveries on cached copies, where a crash may have prevented them.
package struct RecalledDeliveries: Sendable {
    /// The time before the last delivery in which copies of others may have been kept valid.
    private static let invalidationSpan = TimeSpan.minutes(1)
    /// The longest time between the commit of a delivery and its effect on the copies.
    private static let effectSpan = TimeSpan.seconds(5)

    let data: DataStore
    let outbound: OutboundWrites
    let updates: EntryUpdates
    let effects: OwnWriteEffects
    let logger: Logger

    /// Invalidates the copies that were requested before the last deliveries and that these have changed, and works the deliveries that no copy shows into the copies of their
    /// clients. Call it before the first read is served. Failures are logged.
    package func project() async {
        do {
            let last = try await data.lastDelivered(within: Self.invalidationSpan)
            for operation in last {
                if let answer = operation.result?.head {
                    await updates.invalidate(after: answer, to: operation.request, at: operation.ended)
                }
            }
            let end = last.compactMap(\.endedAt).max() ?? .distantPast
            let late = last.filter { ($0.endedAt ?? .distantPast) >= end - Self.effectSpan }
            let whole = try await data.operations(sequences: late.map(\.sequence))
            let deliveries = DeliveryEffects(data: data, outbound: outbound, effects: effects)
            for operation in whole.byEnd { await deliveries.note(operation) }
        } catch {
            logger.failed("the last deliveries cannot be read", error: error)
        }
    }
}

/// Finds the state of items after writes without an answer, and works it into the copies of their clients.
struct LostAnswers: Sendable {
    let active: ActiveConfiguration
    let outbound: OutboundWrites
    let effects: OwnWriteEffects
    let updates: EntryUpdates
    /// Now, by the clock and in the order of ticks.
    let moment: @Sendable () -> Moment

    /// Works a delivered write without an answer into the copies of its principal: the representation that a read has shown since becomes
    /// the copy.
    /// - Parameter shown: the answer to that read; nil without one.
    func note(_ operation: QueuedWrite, mapping: ServerMapping?, shown: OperationResult?) async {
        guard let bare = try? await outbound.bare(operation) else { return }
        var write = AnsweredWrite(
            request: bare.head, body: bare.body, answer: ResponseHead(status: operation.request.method == .post ? 201 : 204), answerBody: []
        )
        write.answer.fields[.location] = mapping?.url
        if changesItem(write) { write.take(shown, of: mapping) }
        await updates.invalidate(after: write.answer, to: bare.head)
        await effects.note(write, by: operation.writer, sentAt: moment())
    }

    /// Reads the item that a delivered write has changed, where its answer broke off.
    func complete(_ write: inout AnsweredWrite, of operation: QueuedWrite, sending: SentAttempt, mapping: ServerMapping?) async {
        guard operation.state == .delivered, write.brokeOff, changesItem(write) else { return }
        var shown = sending.found
        if shown == nil { shown = await read(mapping?.url ?? write.request.url, of: operation) }
        write.take(shown, of: mapping)
    }

    /// Returns the upstream's answer to a GET of the item; nil where it does not show the item.
    func read(_ url: String, of operation: QueuedWrite) async -> OperationResult? {
        guard let upstream = active.routes.upstream(named: operation.upstream), let path = try? RequestHead(url: url).path,
            let bare = try? await outbound.bare(operation),
            case .shown(.present(let side, let head), _) = await outbound.look(at: path, of: operation, like: bare.head, upstream: upstream)
        else { return nil }
        return OperationResult(head: head, body: side.body)
    }

    /// True if the write changes or creates an item of a declared resource.
    private func changesItem(_ write: AnsweredWrite) -> Bool {
        guard let entity = active.routes.plan(for: write.request).entity, entity.resource != nil, entity.action == nil else { return false }
        return entity.isItem ? [.put, .patch].contains(write.request.method) : write.request.method == .post
    }
}

extension AnsweredWrite {
    /// True if the answer should be a representation, and its body was not received whole.
    fileprivate var brokeOff: Bool {
        [200, 201].contains(answer.status) && MediaType.isJSON(answer.fields) && answer.fields[.contentLength] != "0"
            && answerJSON == nil
    }

    /// Replaces the answer by what a read has shown since; without a representation, the state after the write is not known.
    mutating func take(_ shown: OperationResult?, of created: ServerMapping? = nil) {
        if let shown {
            answer = ResponseHead(status: created == nil ? 200 : 201, fields: shown.head.fields)
            answer.fields[.location] = created?.url
            answerBody = shown.body
        }
        evidence = shown == nil || answerValue == nil ? .nothing : .read
    }
}

extension UpstreamClient {
    /// Returns the answer to a GET of the item that a write has changed, as the writer; nil where it does not show the item.
    func item(after write: RequestHead, at upstream: Upstream) async -> OperationResult? {
        var question = write.look
        question.fields[upstream.idempotency.name] = nil
        guard let answer = try? await send(question, body: .none, upstream: upstream), answer.head.status == 200 else { return nil }
        let (head, body) = await answer.beginning()
        return OperationResult(head: head, body: body)
    }
}
