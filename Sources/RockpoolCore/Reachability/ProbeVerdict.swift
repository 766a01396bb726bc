// Whether a probe's answer is the upstream's own and the one it should be (contract §6, `probe`, captive portals).
import HTTPTypes

/// What a probe's answer says.
package enum ProbeVerdict: Hashable, Sendable {
    case expected
    /// It is there but not well.
    case unexpected(status: Int)
    /// Something else answered; why we think so.
    case captive(detail: String)

    /// Judges the answer to `probe`, or to the HEAD of the root that stands in for one. A portal shows itself by a redirect to another
    /// host, by 511 (RFC 6585 §6), or by a page where the probe expects a status without content.
    package static func judge(_ response: ResponseHead, to probe: Probe?, origin: OriginAddress) -> ProbeVerdict {
        if let sign = PortalSuspicion.sign(in: response, origin: origin, target: probe?.path ?? "/") {
            return .captive(detail: sign.detail)
        }
        guard let probe, !probe.expect.isEmpty, !probe.expect.contains(response.status) else { return .expected }
        if response.status == 200, MediaType.isPage(response.fields) { return .captive(detail: "a page where none belongs") }
        return .unexpected(status: response.status)
    }
}
