// Judges whether a probe's response comes from the upstream (docs/reference/behaviour.md#reachability).

extension ProbeVerdict {
    /// Judges the response to `probe`, or to a HEAD of the root if no probe is declared. Signs of a portal are a redirect to another host,
    /// a 511 (RFC 6585 §6), or a page with status 200 where the probe expects other statuses.
    /// - Parameter hasBody: False if the response is known to have no body; then it is no page.
    package static func judge(_ response: ResponseHead, to probe: Probe?, origin: OriginAddress, hasBody: Bool = true) -> ProbeVerdict {
        if response.status == 511 { return .captive(detail: PortalSuspicion(.login, basis: .status).detail) }
        if let host = PortalSuspicion.redirectHost(in: response, origin: origin, target: probe?.path ?? "/") {
            return .captive(detail: PortalSuspicion(.redirect(host: host), basis: .copy).detail)
        }
        guard let probe, !probe.expect.isEmpty, !probe.expect.contains(response.status) else { return .expected }
        if response.status == 200, PortalSuspicion.isPage(response, hasBody: hasBody) {
            return .captive(detail: "a page where none belongs")
        }
        return .unexpected(status: response.status)
    }
}
