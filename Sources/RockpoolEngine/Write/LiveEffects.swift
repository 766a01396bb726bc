// The effects of a live write's answer on what is stored (docs/outbox.md#effects).
import RockpoolCore
import RockpoolStore

/// Works answered live writes into the cache and the listings of files.
struct LiveEffects: Sendable {
    let updates: EntryUpdates
    let effects: OwnWriteEffects
    let overlay: WriteOverlay
    let localIDs: LocalIDTable
    /// Now, by the clock and in the order of ticks.
    let moment: @Sendable () -> Moment

    /// Notes an answer with a body that nothing depends on, and invalidates what it makes out of date.
    /// - Parameter request: the request as the pipeline works with it.
    func note(
        _ answer: ResponseHead, to request: RequestHead, body: [UInt8], sentAt: Moment, plan: RoutePlan, identity: Identity
    ) async {
        await updates.invalidateEverywhere(after: answer, to: request)
        var write = AnsweredWrite(request: request, body: body, answer: answer, answerBody: nil)
        write.success = plan.success
        await note(write, length: Int64(body.count), sentAt: sentAt, plan: plan, identity: identity)
    }

    /// - Parameters:
    ///   - length: of the request's body, if that is not at hand.
    ///   - program: that which wrote; nil where it is not known.
    func note(
        _ write: AnsweredWrite, length: Int64, sentAt: Moment, plan: RoutePlan, identity: Identity, program: Viewer.Program? = nil
    ) async {
        guard !plan.isTelemetry else { return }
        await effects.note(write, by: Viewer(partition: identity.partition, program: program), sentAt: sentAt)
        if write.outcome != .none { tell(write.request, partition: identity.partition) }
        guard let upstream = plan.upstream?.name else { return }
        if let entity = plan.entity, entity.resource != nil {
            guard [.applied, .absent].contains(write.outcome),
                case let (collection?, id?) = entity.names({ localIDs.alias(upstream: upstream, collection: $0, id: $1) })
            else { return }
            return overlay.notePassed(
                upstream: upstream, collection: collection, entityID: id, principal: identity.principal, at: moment().tick)
        }
        overlay.files.note(
            write.request, answer: write.answer, length: write.body.map { Int64($0.count) } ?? length, upstream: upstream,
            principal: identity.principal, at: moment())
    }

    /// Tells the other nodes of a fleet where their copies may lack the write.
    private func tell(_ request: RequestHead, partition: String?) {
        updates.news.tell(
            [request.url, WebDAVEffect.destination(of: request).map { request.origin.url + $0 }].compactMap(\.self)
                .map { .near($0, partition: partition ?? "") })
    }

    /// Notes that a write may have taken effect: what is stored counts as older, and the version that its client has seen is not known any
    /// more, so that the next write is not conditional on it.
    func noteUnknown(_ request: RequestHead, by viewer: Viewer) async {
        // In a task of its own, because that of a client that has left is cancelled.
        await Task {
            let head = ResponseHead(status: 200)
            await updates.invalidateEverywhere(after: head, to: request)
            var write = AnsweredWrite(request: request, body: nil, answer: head, answerBody: nil)
            write.evidence = .nothing
            await effects.note(write, by: viewer, sentAt: moment())
            tell(request, partition: viewer.partition)
        }.value
    }
}
