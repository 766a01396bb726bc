// A read of a URL of which nothing is stored, sent by a relay, and the storing of its response (docs/architecture.md#relays).
package import NIOCore
package import RockpoolCore
import RockpoolStore
import Synchronization

/// One such read. Requests of the same key wait for its end, and look into the store then.
package final class FirstRead: FetchLead {
    private let reads: ReadPipeline
    private let context: RequestContext
    private let key: FetchKey
    /// The epoch of the fetch table before it was known that nothing is stored.
    private let epoch: UInt64
    let beganAt: Moment
    /// Called if the store had no room for the response.
    private let refused: @Sendable () -> Void
    private let sight: ClientSight
    /// The moment when the client asked.
    private let asked: UInt64
    private let fetch = Mutex<CoalescedFetch?>(nil)

    init(_ context: RequestContext, by reads: ReadPipeline, sight: ClientSight, refused: @escaping @Sendable () -> Void) {
        (self.reads, self.context, self.refused) = (reads, context, refused)
        (self.sight, asked) = (sight, sight.moment())
        key = context.fetchKey()
        epoch = reads.inFlight.epoch(of: key.base)
        beganAt = reads.updates.cache.moment()
    }

    /// True if something may be stored that the read could be answered with, or if its URL is presigned: the pipeline knows which signatures
    /// may read a copy. Asked after the read has been made, so that what is stored since then is noticed by `begin`.
    var mayBeStored: Bool {
        context.presigned != nil
            || StoragePartition.readable(by: context.identity.partition).contains { reads.responses.cache.mayHold(context.key(in: $0)) }
    }

    deinit { leave() }

    /// Registers the read. False if another one of the same key is under way: then the read pipeline answers.
    package func begin() -> Bool {
        guard case .lead(let fetch) = reads.inFlight.join(at: key, since: epoch, mayFollow: false, now: beganAt) else { return false }
        self.fetch.withLock { $0 = fetch }
        return true
    }

    /// Ends the read, because its response is passed on and not stored, as the next ones will be.
    package func pass() {
        reads.inFlight.note(uncollapsible: key.base, now: reads.now())
        leave()
    }

    /// Ends the read without a response: the requests that wait for it look again.
    package func leave() {
        guard let fetch = takeFetch() else { return }
        reads.inFlight.leave(key: key)
        fetch.giveUp()
    }

    func takeLead(of key: FetchKey) -> CoalescedFetch? { key == self.key ? takeFetch() : nil }

    /// Starts to store a response. False if the read pipeline has to treat it.
    ///
    /// - Parameters:
    ///   - head: with end-to-end fields only.
    ///   - body: whole.
    package func keep(_ head: ResponseHead, body: ByteBuffer, on executor: any TaskExecutor) -> Bool {
        guard let copy = reads.responses.copy(of: head, length: body.readableBytes, sentAt: beganAt, for: context), let fetch = takeFetch()
        else { return false }
        if context.plan.showsState,
            let shown = ShownState(head, content: nil, includes: beganAt.tick, source: .upstream, shownAt: reads.now())
        {
            sight.note(shown, at: context.request.url, to: context.viewer, asked: asked)
        }
        fetch.start(on: executor) { [self] in
            if await !reads.responses.keep(body, as: copy, by: context.plan) { refused() }
            reads.inFlight.leave(key: key)
            return .nothing
        }
        return true
    }

    private func takeFetch() -> CoalescedFetch? {
        fetch.withLock { fetch in
            defer { fetch = nil }
            return fetch
        }
    }
}
