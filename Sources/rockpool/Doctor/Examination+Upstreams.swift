// Checks that each upstream responds and that its clock agrees with this machine's.
import HTTPTypes
import Logging
import RockpoolCore
import RockpoolEngine
import RockpoolNetwork
import RockpoolStore

extension Examination {
    func upstreams(switched: NetworkSwitch) async -> [Finding] {
        guard !configuration.upstreams.isEmpty else { return [] }
        let addresses = AddressPolicy(deny: configuration.proxy.denyAddresses.compactMap { CIDR($0) })
        guard let origin = try? CurlOrigin(addresses: addresses, ownPorts: OwnPorts(), logger: Logger(label: "rockpool", level: .error))
        else {
            return [.fail("upstreams", detail: "libcurl cannot be set up", advice: "free memory and file descriptors")]
        }
        defer { origin.close() }
        var found: [Finding] = []
        for upstream in configuration.upstreams {
            guard switched.mode(of: upstream.name) != .offline else {
                found.append(.ok("upstream \(upstream.name)", detail: "network mode offline; not checked"))
                continue
            }
            found += await look(at: upstream, through: origin)
        }
        return found
    }

    /// The running server's network mode, else the stored one.
    func networkSwitch() async -> NetworkSwitch {
        if let running: NetworkReport = try? await client.send(.get("/v1/network"), timeout: .seconds(5)).decoded() {
            var known = NetworkSwitch(mode: Reachability.Mode(rawValue: running.mode) ?? .auto)
            for upstream in running.upstreams {
                if let mode = upstream.mode.flatMap(Reachability.Mode.init) { known.turn(mode, upstream: upstream.name) }
            }
            return known
        }
        return DataStore.networkSwitch(in: configuration.storage.stateDir) ?? NetworkSwitch(mode: configuration.network)
    }

    private func look(at upstream: Upstream, through origin: CurlOrigin) async -> [Finding] {
        let name = "upstream \(upstream.name)"
        let head = RequestHead(method: .head, origin: upstream.origin, target: upstream.probe?.path ?? "/", fields: [:])
        let parent = configuration.parent(for: upstream.origin, of: upstream)
        var request = OutboundRequest(
            head: head, timeouts: upstream.timeouts, tls: upstream.tls, via: parent?.url, needsFreshConnection: true)
        (request.isDeclared, request.parentCredential) = (true, parent?.credential)
        do throws(TransferFailure) {
            let reply = try await origin.send(request)
            reply.body.abandon()
            return [.ok(name, detail: "\(upstream.origin.url) responds (\(reply.head.status))")] + clock(of: reply.head)
        } catch {
            let detail = "\(upstream.origin.url): \(error.detail)"
            if error.kind == .tls {
                return [.fail(name, detail: detail, advice: "its certificate must be valid: set its authority in tls.ca_file")]
            }
            let proxy = parent == nil ? EnvironmentProxy(for: upstream.origin, in: environment) : nil
            let advice = proxy?.advice ?? "nothing to do if it is offline on purpose: reads come from the cache, writes are queued"
            return [.warn(name, detail: detail, advice: advice)]
        }
    }

    private func clock(of head: ResponseHead) -> [Finding] {
        guard let date = head.fields[.date].flatMap({ HTTPDate.parse($0) }) else { return [] }
        let now = WallClock.now()
        let skew = now > date ? now - date : date - now
        if skew < .seconds(60) { return [.ok("clock", detail: "agrees with the upstream's")] }
        let words = ForPeople.seconds(Double(skew.seconds))
        if skew < .hours(24) {
            return [.warn("clock", detail: "\(words) from the upstream's", advice: "synchronise it: freshness depends on it")]
        }
        return [.fail("clock", detail: "\(words) from the upstream's", advice: "set it: certificates and freshness depend on it")]
    }
}
