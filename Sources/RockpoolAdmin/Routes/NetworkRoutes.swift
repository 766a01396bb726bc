// `/v1/network`: the reachability of each upstream, and the manual switch (docs/reference/admin-api.md#switch).
import Hummingbird
import RockpoolCore
import RockpoolEngine

struct NetworkRoutes {
    let active: ActiveConfiguration
    let reachability: ReachabilityTable
    let upstreams: UpstreamClient
    let untrusting: UntrustingTable
    let signedArrivals: SignedArrivals
    let events: EngineEvents
    let now: @Sendable () -> Timestamp

    func add(to router: Router<AdminContext>) {
        router.get("/v1/network") { _, _ in Response.json(document) }
        router.put("/v1/network") { request, _ in await set(request: request) }
    }

    private func set(request: Request) async -> Response {
        guard let body = await request.jsonObject() else {
            return .problem(.badRequest, detail: #"send {"mode": "auto" | "offline" | "online", "upstream": NAME or null}"#)
        }
        if let name = body.map(\.name).first(where: { $0 != "mode" && $0 != "upstream" }) {
            return .problem(.unprocessable, detail: "unknown member \(name.prefix(40)); there are mode and upstream")
        }
        guard let mode = body["mode"]?.string.flatMap(Reachability.Mode.init) else {
            return .problem(.unprocessable, detail: "mode is one of auto, offline and online")
        }
        let upstream = body["upstream"]?.string
        if upstream == nil, let given = body["upstream"], given != .null {
            return .problem(.unprocessable, detail: "upstream must be the name of an upstream, or null for all")
        }
        let before = shown
        do {
            guard try upstreams.switchNetwork(mode, upstream: upstream) else {
                return .problem(.notFound, detail: Refusal.unknown(upstream: upstream ?? "", among: active).detail)
            }
        } catch {
            return .problem(.noRoom, detail: "the mode is set, but cannot be stored for the next start: \(error)")
        }
        let after = shown
        for (name, state) in before {
            guard let now = after[name], now != state else { continue }
            events.tell(.reachability(.init(upstream: name, from: state, to: now)))
        }
        return .json(document)
    }

    /// The published state of each upstream: the manual switch overrides the detected one.
    private var shown: [String: Reachability.State] {
        let states = active.routes.upstreams.map { ($0.name, reachability.machine(of: $0.name)?.shownState ?? .online) }
        return Dictionary(states) { first, _ in first }
    }

    private var document: JSONValue {
        [
            "mode": .string(reachability.mode.rawValue),
            "upstreams": .array(active.routes.upstreams.map { row(for: $0) }),
            "untrusting": .array(untrusting.list.map { Self.row(for: $0, at: now()) }),
        ]
    }

    /// A client that did not trust our certificate authority.
    private static func row(for refusal: UntrustingClient, at now: Timestamp) -> JSONValue {
        [
            "host": .string(refusal.host),
            "client": .string(refusal.client),
            "at": .time(refusal.at),
            "alert": .string(refusal.alert),
            "count": .integer(refusal.count),
            "bypassedUntil": .time(refusal.bypassedUntil.flatMap { $0 > now ? $0 : nil }),
        ]
    }

    private func row(for upstream: Upstream) -> JSONValue {
        let machine = reachability.machine(of: upstream.name)
        return [
            "name": .string(upstream.name),
            "mode": .string((machine?.mode ?? .auto).rawValue),
            "reachability": .string((machine?.shownState ?? .untried).rawValue),
            "since": .time(machine?.since),
            "bandwidth": .optional(reachability.bandwidth(of: upstream.name, now: now())?.rawValue),
            "signatureBrokenAt": .time(signedArrivals.last(to: upstream.name)),
        ]
    }
}
