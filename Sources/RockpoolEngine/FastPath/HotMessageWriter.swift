// Decides about a kept reply once a second, and serialises it (docs/architecture.md#parts *memory tier*).
import HTTPTypes
package import NIOCore
import RockpoolCore
import RockpoolStore

/// A head in the form that a connection sends.
package struct SerialisedHead: Sendable {
    /// The head of an HTTP/1.1 message; empty over HTTP/2.
    package let bytes: ByteBuffer
    /// The fields of an HTTP/2 head, of the type that the connection uses; nil over HTTP/1.1.
    package let fields: (any Sendable)?

    package init(bytes: ByteBuffer) { (self.bytes, fields) = (bytes, nil) }

    package init(fields: any Sendable) { (bytes, self.fields) = (ByteBuffer(), fields) }
}

/// Serialises the message of a kept reply, equal to the response of the full path at that moment.
struct HotMessageWriter: Sendable {
    let reachability: ReachabilityTable
    let finalFields: FinalFields

    /// A response that may be sent without the read pipeline.
    struct Decision {
        let entry: CacheEntry
        let freshness: Freshness
        let status: CacheStatus
        /// The reason why nothing is sent to the upstream, if the response is sent for that reason.
        var absence: Reachability.Reason?
        /// True if the full path would refresh the response behind this reply.
        var refreshesBehind = false
        var isStale: Bool { !freshness.isFresh }
    }

    /// Returns the message for one form of the reply; nil if the request needs the full path now.
    func message(
        for hot: FastPathReply, as form: FastPathReply.Form, at now: Timestamp, epoch: UInt64,
        serialise: (ResponseHead, Int?) -> SerialisedHead
    ) -> HotMessage? {
        guard let decision = decision(on: hot.basis, at: now), decision.entry.id == hot.entry.id,
            !decision.refreshesBehind || !hot.handOver(at: now), let (stored, body) = content(of: hot, as: form)
        else { return nil }
        let head = hot.entry.dated(stored, by: decision.freshness)
        var trace = Trace(method: "GET", url: "", startedAt: now)
        trace.cacheStatus = decision.status
        if let absence = decision.absence {
            let last = hot.basis.upstream.flatMap { reachability.machine(of: $0)?.lastError }
            trace.note(failure: .notTried(absence, last), origin: hot.basis.request.origin)
        }
        var reply = Reply(head: head, body: .none(length: nil), trace: trace)
        if hot.hidesTags { CacheTags.remove(from: &reply.head.fields) }
        finalFields.add(to: &reply, trace: trace)
        let serialised = serialise(reply.head, body?.readableBytes)
        return HotMessage(
            head: serialised.bytes, fields: serialised.fields, body: body, isStale: decision.isStale, validFrom: now,
            validUntil: now + decision.freshness.unchanging(at: now), epoch: epoch,
            note: HotNote(
                hot, head: reply.head, cacheStatus: decision.status, isStale: decision.isStale, error: trace.proxyStatus?.error.rawValue))
    }

    /// Returns the decision that the read pipeline would make; nil if the pipeline would send a request, or may try the upstream.
    func decision(on basis: ReuseBasis, at now: Timestamp) -> Decision? {
        let permission = reachability.expectedPermission(for: basis.upstream, now: now)
        var rules = basis.rules
        // While a portal is suspected, the full path decides.
        guard rules.policy != .offlineFirst || reachability.isTrusted(basis.upstream) || permission.reason != nil else { return nil }
        rules.isReachable = permission.reason == nil
        let reuse = Reuse.decide(candidates: basis.candidates.map(\.response), request: basis.request, context: rules, now: now)
        switch reuse {
        case .fresh(let index, let freshness):
            return Decision(entry: basis.candidates[index], freshness: freshness, status: .hit(freshness))
        case .stale(let index, let freshness, let reason):
            let status = CacheStatus(hit: true, ttl: freshness.remaining.seconds, detail: reason.detail)
            var decision = Decision(entry: basis.candidates[index], freshness: freshness, status: status)
            switch reason {
            case .offline: decision.absence = permission.reason
            case .staleWhileRevalidate(let refreshes):
                decision.absence = permission.reason
                decision.refreshesBehind = refreshes && rules.isReachable
            case .cacheOnly: break
            case .variant, .maxStale, .budget: return nil
            }
            return decision
        case .validate, .complete, .none, .gatewayTimeout: return nil
        }
    }

    /// Returns head and body of one form; nil if the full path would send another.
    private func content(of hot: FastPathReply, as form: FastPathReply.Form) -> (ResponseHead, ByteBuffer?)? {
        let stored = hot.entry.response.head
        var request = hot.basis.request
        switch form {
        case .whole: return (stored, hot.body)
        case .notModified:
            request.fields[.ifNoneMatch] = stored.fields[.eTag]
            request.fields[.ifModifiedSince] = stored.fields[.lastModified]
            guard case .notModified(let head) = Preconditions.evaluate(request: request, stored: stored) else { return nil }
            return (head, nil)
        case .part(let range):
            request.fields[.range] = String(decoding: range, as: UTF8.self)
            let length = Int64(hot.body.readableBytes)
            guard case .part(let head, let part)? = RangeReply.decide(request: request, stored: stored, bodyLength: length, boundary: ""),
                let slice = hot.body.getSlice(
                    at: hot.body.readerIndex + Int(part.lowerBound), length: Int(part.upperBound - part.lowerBound))
            else { return nil }
            return (head, slice)
        }
    }
}

extension Reachability.Permission {
    /// The reason why nothing may be sent; nil if a request may be sent.
    fileprivate var reason: Reachability.Reason? {
        if case .no(let reason) = self { reason } else { nil }
    }
}

extension CacheEntry {
    /// Returns `head`, made from the stored one, with the fields that depend on the moment and on the copy.
    func dated(_ head: ResponseHead, by freshness: Freshness) -> ResponseHead {
        var head = head
        head.fields[.age] = String(max(0, freshness.age.seconds))
        if response.isDirty { head.fields[.rockpoolDirty] = "1" }
        return head
    }
}

extension Freshness {
    /// The time for which the serialised head stays correct: until the next change of `Age`, `ttl` or `Date`, or the end of freshness.
    fileprivate func unchanging(at now: Timestamp) -> TimeSpan {
        let untilAge = 1000 - age.milliseconds % 1000
        let untilLeft = remaining.milliseconds - remaining.seconds.multipliedClamped(by: 1000) + 1
        let untilDate = 1000 - (now.milliseconds - now.seconds.multipliedClamped(by: 1000))
        let until = TimeSpan.milliseconds(min(untilAge, untilLeft, untilDate))
        return isFresh ? min(remaining, until) : until
    }
}
