// A write that a relay sends in place of the write pipeline (docs/architecture.md#relays).
import HTTPTypes
import NIOCore
package import RockpoolCore
import RockpoolStore
import Synchronization

/// One such write, from its record on disk to the effects of its answer. What a relay cannot end, the write pipeline does (`conclude`).
package final class RelayedWrite: Sendable {
    /// The longest time between the last response on a connection and a write that must not be sent twice. Servers close idle connections
    /// later than that, so such a write does not meet a connection that is being closed.
    package static let quiet = TimeSpan.seconds(1)

    private let rule: WriteRule
    /// As the pipeline works with it.
    private let request: RequestHead
    let body: ByteBuffer
    private let writes: WritePipeline
    /// Without its record.
    private let write: ReceivedWrite
    private let trace = Mutex<LiveWriteTrace?>(nil)
    /// Of its client's key; until it has been answered, no other request with it is sent.
    private let claim: KeyClaim?
    /// True if a second effect of the write is harmless, or prevented by its key.
    package let isRepeatable: Bool
    /// True if the last write like this one was a moment ago.
    package let isFollowing: Bool
    let sentAt: Moment

    /// - Parameter request: as the pipeline works with it.
    init(
        _ write: ReceivedWrite, of request: RequestHead, body: ByteBuffer, under claim: KeyClaim?, by rule: WriteRule, isFollowing: Bool,
        of writes: WritePipeline
    ) {
        (self.write, self.request, self.body, self.isFollowing, self.writes) = (write, request, body, isFollowing, writes)
        self.claim = claim
        (self.rule, isRepeatable) = (rule, rule.isRepeatable)
        sentAt = writes.cache.moment()
    }

    /// The answer is not needed any more.
    deinit { end() }

    /// The head as it was sent, without the operation's key and the length.
    func unkeyed(_ sent: RequestHead) -> RequestHead { rule.passed.unkeyed(sent) }

    /// The write with the record of its attempt.
    var received: ReceivedWrite {
        var write = write
        write.trace = trace.withLock { $0 }
        return write
    }

    /// Records that the write is about to be sent (docs/outbox.md#live-writes).
    /// - Parameter then: called once it is recorded, or cannot be; on any thread.
    package func record(then: @escaping @Sendable () -> Void) {
        writes.traces.record(write, share: writes.share(of: write.operation.principal, at: rule.passed.upstream)) { [self] trace in
            self.trace.withLock { $0 = trace }
            writes.upstreams.parents.noteWrite(to: request.origin)
            then()
        }
    }

    /// Ends the write if its answer has no effect on anything that is stored; false if `answered` must be called.
    package func isAnswered(by head: ResponseHead) -> Bool {
        guard let places = rule.places, !head.fields.contains(.location),
            CacheGroups.invalidated(by: head, to: request).isEmpty,
            writes.cache.invalidateAbsent(
                places, near: rule.near, partitions: StoragePartition.readable(by: rule.passed.identity.partition))
        else { return false }
        writes.ownWrites.sight.note(head, to: request, by: Viewer(partition: rule.passed.identity.partition))
        writes.upstreams.parents.noteWrite(to: request.origin)
        end()
        claim?.leave()
        return true
    }

    /// Works the effects of the answer into the cache, and ends the record: the client gets its answer next.
    package func answered(by head: ResponseHead) async {
        writes.upstreams.parents.noteWrite(to: request.origin)
        await writes.liveEffects.note(
            head, to: request, body: Array(body.readableBytesView), sentAt: sentAt, plan: rule.passed.plan,
            identity: rule.passed.identity)
        end()
        claim?.leave()
    }

    /// Ends a write that was sent, because its client has left: its effect is not known, so that what is stored counts as older.
    package func abandon() {
        trace.withLock { writes.traces.abandon(&$0) }
        Task { [writes, request, rule] in
            await writes.liveEffects.noteUnknown(request, by: Viewer(partition: rule.passed.identity.partition))
        }
    }

    /// Ends the record without effects: the client has left, or nothing was sent.
    package func end() { writes.traces.end(trace.withLock { $0 }) }

    /// Ends the exchange of a write that a relay could not end: by its answer, by sending it if it was not sent or may be repeated, or in the
    /// outbox. The decisions are those that the write was sent by.
    func conclude(_ exchange: Exchange, _ trace: inout Trace) async -> Reply {
        var exchange = exchange
        exchange.request = request
        var context = RequestContext(
            exchange: exchange, trace: trace, plan: rule.passed.plan, identity: rule.passed.identity, permission: .go,
            wishes: WritePreferences())
        context.trace.verdict = .pass
        context.trace.cacheStatus = CacheStatus(hit: false, fwd: .method)
        context.trace.record(
            .routed(upstream: rule.passed.upstream.name, category: rule.passed.plan.category?.name, strategy: rule.passed.plan.strategy))
        context.trace.identity = rule.passed.identity
        defer {
            trace = context.trace
            claim?.leave()
        }
        var write = received
        if write.operation.principal == nil {
            write.operation.request.fields[.rockpoolClient] = exchange.clientAddress.isEmpty ? nil : exchange.clientAddress
        }
        let whole = Spool.Whole(body)
        do {
            return try await writes.send(&write, body: whole, context: &context, upstream: rule.passed.upstream)
        } catch {
            return await writes.outboxFailed(error, body: whole, context: &context)
        }
    }
}
