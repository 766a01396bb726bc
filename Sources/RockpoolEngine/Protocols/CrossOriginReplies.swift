// Pages of other origins: remembers what the upstream permits them, and permits the same in replies that Rockpool makes
// (docs/caching.md#pages-of-other-origins).
import HTTPTypes
import Logging
import RockpoolCore
import RockpoolStore

/// Learns CORS permissions from the upstream's answers and applies them while Rockpool answers in its place.
struct CrossOriginReplies: Sendable {
    let cache: CacheStore
    let data: DataStore
    let reachability: ReachabilityTable
    let active: ActiveConfiguration
    let logger: Logger

    // MARK: replies

    /// Completes the reply to a request with `Origin`. Replies of undeclared hosts are left unchanged.
    func complete(_ reply: inout Reply, to request: RequestHead, _ trace: Trace) async {
        guard let asked = CrossOriginRequest(request), let place = await place(of: request), place.upstream.cors != .off else { return }
        if reply.isUpstreams(trace) {
            if !place.isStatusDocument { await learn(from: reply.head, to: asked, place) }
            guard asked.preflight != nil, (502...504).contains(reply.head.status) else {
                return CrossOriginReply.addPrivateNetwork(to: &reply.head.fields, for: asked)
            }
        }
        let grant = grant(to: asked, at: place)
        if asked.preflight != nil, let head = CrossOriginReply.preflight(asked, by: grant?.reading(place.isStatusDocument)) {
            if case .stream(let source, _) = reply.body { source.abandon() }
            reply.head = head
            reply.body = .none(length: nil)
            return
        }
        CrossOriginReply.permit(asked.origin, by: grant, in: &reply.head.fields)
    }

    // MARK: writes

    /// The reason why a write of a page must not be queued; nil if it may.
    /// - Parameter client: The listener's address, under which a gateway's own pages are seen.
    func obstacleToQueueing(_ request: RequestHead, _ plan: RoutePlan, client: String) -> String? {
        guard plan.isWrite, plan.queueable, let upstream = plan.upstream else { return nil }
        let place = CrossOriginScope.name(of: request, entity: plan.entity).map { Place(upstream: upstream, scope: $0) }
        let grant = place.flatMap { place in CrossOriginRequest(request).flatMap { self.grant(to: $0, at: place) } }
        return CrossSiteWrite.obstacle(to: request, grant: grant) { page in
            page == upstream.origin.url || Self.isPage(page, of: client)
        }
    }

    /// True if `page` is an origin under which this listener is reached.
    private static func isPage(_ page: String, of client: String) -> Bool {
        guard let separator = page.firstRange(of: "://"), let listener = HostAndPort(client),
            let address = HostAndPort(String(page[separator.upperBound...]), defaultPort: 80)
        else { return false }
        // A gateway that is selected by its name is that name only.
        let isAnyName = IPAddress(listener.host) != nil && OriginAddress.isLoopback(address.host)
        return address.port == listener.port && (address.host == listener.host || isAnyName)
    }

    // MARK: permissions

    /// The upstream and the group of paths of a request.
    private struct Place {
        var upstream: Upstream
        var scope: String
        var isStatusDocument = false
    }

    /// A status document has the permissions of the write that it describes.
    private func place(of request: RequestHead) async -> Place? {
        guard let id = QueuedWrite.statusID(in: request.target) else { return place(request) }
        guard let operation = try? await data.operation(id: id) else { return nil }
        var place = place(operation.request)
        place?.isStatusDocument = true
        return place
    }

    /// A preflight has the place of the request that it asks for.
    private func place(_ request: RequestHead) -> Place? {
        var request = request
        if let method = CrossOriginRequest(request)?.preflight.flatMap({ HTTPRequest.Method($0.method) }) { request.method = method }
        let plan = active.routes.plan(for: request)
        guard let upstream = plan.upstream, let scope = CrossOriginScope.name(of: request, entity: plan.entity) else { return nil }
        return Place(upstream: upstream, scope: scope)
    }

    private func grant(to asked: CrossOriginRequest, at place: Place) -> CrossOriginGrant? {
        let remembered = remembered(asked.origin, place) ?? remembered("*", place)
        switch place.upstream.cors {
        case .off: return nil
        case .remembered: return remembered
        case .origins(let origins):
            guard origins.contains(asked.origin) else { return CrossOriginGrant(.refused) }
            var grant = CrossOriginGrant(.named)
            grant.allowsCredentials = true
            grant.methods = Set(place.upstream.queue.methods + ["GET", "HEAD"])
            grant.fields = Set(asked.preflight?.fields ?? [])
            grant.exposed = remembered?.exposed ?? []
            return grant
        }
    }

    private func remembered(_ page: String, _ place: Place) -> CrossOriginGrant? {
        cache.originGrant(of: OriginGrantName(upstream: place.upstream.origin, page: page, scope: place.scope))
    }

    /// Remembers what the upstream has permitted. A refusal is remembered only where it takes back a permission, so that requests with
    /// invented origins use no space.
    private func learn(from response: ResponseHead, to asked: CrossOriginRequest, _ place: Place) async {
        guard reachability.isTrusted(place.upstream.name) else { return }
        let name = { OriginGrantName(upstream: place.upstream.origin, page: $0, scope: place.scope) }
        let (own, everyones) = (remembered(asked.origin, place), remembered("*", place))
        let before = own ?? everyones
        guard let learned = CrossOriginGrant.learned(from: response, to: asked, before: before) else { return }
        if !learned.isAllowed, before?.isAllowed != true { return }
        do {
            if learned.standing == .any {
                try await cache.noteOriginGrant(learned, of: name("*"))
                if own != nil { try await cache.noteOriginGrant(nil, of: name(asked.origin)) }
            } else {
                try await cache.noteOriginGrant(learned, of: name(asked.origin))
            }
        } catch { logger.failed("CORS permission not stored", error: error) }
    }
}

extension CrossOriginGrant {
    /// The permissions for a status document, which can only be read.
    fileprivate func reading(_ isStatusDocument: Bool) -> CrossOriginGrant {
        guard isStatusDocument else { return self }
        var grant = self
        grant.methods = []
        return grant
    }
}

extension Reply {
    /// True if this is the upstream's own answer to this request, as it came.
    fileprivate func isUpstreams(_ trace: Trace) -> Bool {
        guard [.miss, .pass, .revalidated, .collapsed].contains(trace.verdict), head.fields[.rockpoolState] == nil,
            head.fields[.rockpoolDirty] == nil, trace.cacheStatus?.detail != "portal"
        else { return false }
        if trace.verdict == .collapsed { return true }
        return trace.entries.contains { if case .fetched = $0.step { true } else { false } }
    }
}
