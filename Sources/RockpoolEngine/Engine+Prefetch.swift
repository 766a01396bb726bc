// Prefetch: ordinary GET requests through the whole pipeline, each read to its end so that it is stored
// (docs/reference/admin-api.md#prefetch).
package import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// The outcome for one URL.
package struct Prefetched: Hashable, Sendable {
    package var url: String
    /// Status of the reply; nil if no request was made.
    package var status: Int?
    /// True if a response is stored now, including one that was stored before.
    package var isStored: Bool
    /// The reason why the response was not stored or not pinned, or the failure; nil without a problem.
    package var reason: String?
    /// Length of the body in bytes.
    package var bytes: Int64 = 0
    /// True if the entry is pinned; nil if pinning was not requested or nothing is stored.
    package var isPinned: Bool?
}

extension Engine {
    /// Number of concurrent prefetches.
    package static let prefetchLanes = 4
    /// The time for which one URL waits for the budget of its upstream.
    private static let prefetchPatience = TimeSpan.minutes(1)

    /// Fetches URLs without a fresh entry and stores what may be stored, `prefetchLanes` at a time; returns outcomes in the order of
    /// `urls`.
    ///
    /// - Parameters:
    ///   - fields: Fields of every request, such as the `Accept-Encoding` of the later clients.
    ///   - pin: True to protect the stored entries from eviction.
    package func prefetch(_ urls: [String], fields: HTTPFields = [:], pin: Bool = false) async -> [Prefetched] {
        await withTaskGroup(of: (Int, Prefetched).self) { group in
            var outcomes = [Prefetched?](repeating: nil, count: urls.count)
            var waiting = urls.enumerated().makeIterator()
            let start = { (group: inout TaskGroup<(Int, Prefetched)>) in
                guard let (index, url) = waiting.next() else { return }
                group.addTask { (index, await self.prefetch(url, fields, pin: pin)) }
            }
            for _ in 0..<Self.prefetchLanes { start(&group) }
            for await (index, outcome) in group {
                outcomes[index] = outcome
                start(&group)
            }
            return outcomes.compactMap(\.self)
        }
    }

    private func prefetch(_ url: String, _ fields: HTTPFields, pin: Bool) async -> Prefetched {
        var request: RequestHead
        do {
            request = try RequestHead(url: url, fields: HopByHop.stripped(fields))
        } catch {
            return Prefetched(url: url, status: nil, isStored: false, reason: error.detail)
        }
        // Some APIs reject requests without `User-Agent`.
        if !request.fields.contains(.userAgent) { request.fields[.userAgent] = "rockpool" }
        // Values that browsers and most libraries send; for other clients a stored body is decoded.
        if !request.fields.contains(.accept) { request.fields[.accept] = "*/*" }
        if !request.fields.contains(.acceptEncoding) { request.fields[.acceptEncoding] = "gzip, deflate" }
        Via.appended(to: &request.fields, version: "1.1", name: viaName)
        Via.appendedLoopMark(to: &request.fields, name: viaName)
        // A stored entry may be revalidated, which costs only a head. New content that no client waits for is not fetched over a slow
        // connection (docs/caching.md#bandwidth).
        if let obstacle = await obstacleToPrefetch(request) {
            return Prefetched(url: request.url, status: nil, isStored: false, reason: obstacle)
        }
        let reply = await respond(Exchange(request: request))
        var outcome = Prefetched(url: request.url, status: reply.head.status, isStored: false)
        do {
            outcome.bytes = try await reply.body.drained()
            outcome.isStored = try await isStored(request)
            outcome.reason = reply.trace.whyNotStored
            if outcome.reason == nil, !outcome.isStored { outcome.reason = "the body did not come whole, or there was no room for it" }
            if pin, outcome.isStored, reply.head.status >= 400 {
                (outcome.isPinned, outcome.reason) = (false, "not pinned: it is an error")
            } else if pin, outcome.isStored {
                outcome.isPinned = try await cache.pin(url: request.url, true) != nil
                if outcome.isPinned == false { outcome.reason = "not pinned: the pinned bytes would pass storage.pin_cap" }
            }
        } catch {
            outcome.reason = "\((error as? TransferFailure)?.detail ?? "\(error)")"
        }
        return outcome
    }

    /// Waits for the budget of the upstream, at most for a minute. Returns the reason why the request must not be made now.
    private func obstacleToPrefetch(_ request: RequestHead) async -> String? {
        let plan = routes.plan(for: request)
        guard let upstream = plan.upstream else { return nil }
        let (budgets, name) = (upstreams.budgets, upstream.name)
        if (try? await isStored(request)) != true {
            if budgets.isMetered(upstream) { return "the connection to \(name) is metered" }
            switch reachability.bandwidth(of: name, now: now()) {
            case .low: return "the way to \(name) is too slow for it now"
            case .medium where plan.category?.name == CacheCategory.assets.name: return "the way to \(name) is too slow for assets now"
            default: break
            }
            if plan.category?.name == CacheCategory.assets.name, !budgets.permitsLargeTransfers(upstream, at: now()) {
                return "assets of \(name) are fetched at \(upstream.transferHours.map { "\($0)" } ?? "other hours")"
            }
        }
        let deadline = now() + Self.prefetchPatience
        while let until = budgets.wait(for: .prefetch, with: nil, at: upstream, now: now()) {
            guard until <= deadline, (try? await Task.sleep(for: .milliseconds(max(10, (until - now()).milliseconds)))) != nil else {
                return "the request budget of \(name) is spent until \(RFC3339.format(until))"
            }
        }
        return nil
    }

    /// True if a stored entry, fresh or stale, matches `request`.
    private func isStored(_ request: RequestHead) async throws -> Bool {
        let plan = routes.plan(for: request)
        let identity = credentials.identity(of: request, rule: plan.upstream?.identity ?? .auto)
        for partition in StoragePartition.readable(by: identity.partition) {
            let found = try await cache.lookup(reads.lookup.key(of: request, plan: plan, in: partition))
            let selecting = reads.lookup.selecting(for: request, among: found.map(\.response))
            if found.contains(where: { Vary.matches(stored: $0.response, request: selecting) }) { return true }
        }
        return false
    }
}

extension Trace {
    /// The reason recorded by the last step that prevented storing.
    fileprivate var whyNotStored: String? {
        for step in steps.reversed() {
            switch step {
            case .notStored(let reason), .refused(let reason): return reason
            case .failed(let failure): return failure.detail
            default: break
            }
        }
        return nil
    }
}

extension ReplyBody {
    /// Reads the body to its end and returns its length in bytes.
    func drained() async throws(TransferFailure) -> Int64 {
        switch self {
        case .none: return 0
        case .bytes(let bytes): return Int64(bytes.readableBytes)
        case .file(_, _, let length, _): return length
        case .stream(let source, _):
            var length: Int64 = 0
            while let chunk = try await source.next() { length += Int64(chunk.readableBytes) }
            return length
        }
    }
}
