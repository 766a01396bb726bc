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
        if response.status == 511 { return .captive(detail: "511: the network asks for a login") }
        if (300...399).contains(response.status), let host = redirectHost(response, origin: origin), host != origin.host {
            return .captive(detail: "redirected to \(host)")
        }
        guard let probe, !probe.expect.isEmpty, !probe.expect.contains(response.status) else { return .expected }
        if response.status == 200, isPage(response) { return .captive(detail: "a page where none belongs") }
        return .unexpected(status: response.status)
    }

    /// The host a Location names; nil for a relative or an unreadable one.
    private static func redirectHost(_ response: ResponseHead, origin: OriginAddress) -> String? {
        guard let location = response.fields[.location] else { return nil }
        let absolute = location.hasPrefix("//") ? "\(origin.scheme.rawValue):\(location)" : location
        let withoutFragment = String(absolute.prefix { $0 != "#" })
        guard case .absolute(let target, _) = try? RequestTarget.parse(withoutFragment, method: "GET") else { return nil }
        return target.host
    }

    private static func isPage(_ response: ResponseHead) -> Bool {
        response.fields[.contentType]?.lowercased().hasPrefix("text/html") ?? false
    }
}
