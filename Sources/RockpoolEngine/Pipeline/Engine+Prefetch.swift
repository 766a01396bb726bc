// Reads asked for ahead of need: each an ordinary GET through the whole pipeline, read to its end so that it is stored
// (docs/reference/admin-api.md#prefetch).
package import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// What became of one URL.
package struct Prefetched: Hashable, Sendable {
    package var url: String
    /// Of the reply; nil when there was none to ask for.
    package var status: Int?
    /// Whether it is stored now, be it from before.
    package var isStored: Bool
    /// Why the answer was not stored, or what went wrong; nil when all is well.
    package var reason: String?
    /// Bytes of the body.
    package var bytes: Int64 = 0
    /// Whether it is pinned; nil when that was not asked for.
    package var isPinned: Bool?
}

extension Engine {
    /// Prefetches that run at once.
    package static let prefetchLanes = 4

    /// Fetches what is not fresh and keeps what may be kept, `prefetchLanes` at a time; outcomes in the order of `urls`.
    ///
    /// - Parameters:
    ///   - fields: of every request, such as `Accept-Encoding` of the clients to come.
    ///   - pin: keeps what was stored from being evicted.
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
        // Some APIs answer nobody without a name.
        if !request.fields.contains(.userAgent) { request.fields[.userAgent] = "rockpool" }
        // What every browser and most libraries take, and we decode for the others.
        if !request.fields.contains(.accept) { request.fields[.accept] = "*/*" }
        if !request.fields.contains(.acceptEncoding) { request.fields[.acceptEncoding] = "gzip, deflate" }
        Via.appended(to: &request.fields, version: "1.1", name: viaName)
        Via.appendedLoopMark(to: &request.fields, name: viaName)
        // What is stored may be asked about, which costs a head; nothing new is fetched that nobody waits for (docs/caching.md#bandwidth).
        if let upstream = routes.plan(for: request).upstream, isNarrow(upstream), (try? await isStored(request)) != true {
            return Prefetched(url: request.url, status: nil, isStored: false, reason: "the way to \(upstream.name) is too slow for it now")
        }
        let reply = await respond(Exchange(request: request))
        var outcome = Prefetched(url: request.url, status: reply.head.status, isStored: false)
        do {
            outcome.bytes = try await reply.body.drained()
            outcome.isStored = try await isStored(request)
            outcome.reason = reply.trace.whyNotStored
            if outcome.reason == nil, !outcome.isStored { outcome.reason = "the body did not come whole, or there was no room for it" }
            if pin, outcome.isStored {
                outcome.isPinned = try await cache.pin(url: request.url, true) != nil
                if outcome.isPinned == false { outcome.reason = "not pinned: the pinned bytes would pass storage.pin_cap" }
            }
        } catch {
            outcome.reason = "\((error as? TransferFailure)?.detail ?? "\(error)")"
        }
        return outcome
    }

    /// Whether something stored would be considered for `request`; it need not be fresh.
    private func isStored(_ request: RequestHead) async throws -> Bool {
        let plan = routes.plan(for: request)
        let identity = credentials.identity(of: request, rule: plan.upstream?.identity ?? .auto)
        for partition in StoragePartition.readable(by: identity.partition) {
            let found = try await cache.lookup(key(of: request, plan, in: partition))
            let selecting = selecting(request, among: found.map(\.response))
            if found.contains(where: { Vary.matches(stored: $0.response, request: selecting) }) { return true }
        }
        return false
    }
}

extension Trace {
    /// The step at which storing ended.
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
    /// Reads it to its end and gives its length in bytes.
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
