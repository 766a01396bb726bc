// Detects responses that come from a captive portal or a login page instead of the upstream (docs/caching.md#portals-and-probes, *Never let
// a good copy be
// overwritten*; RFC 6585 §6).
import HTTPTypes

/// The reason why a response is assumed not to come from the upstream. Such a response is relayed, but never stored.
package enum PortalSuspicion: Hashable, Sendable {
    /// 511.
    case login
    /// Redirected to another host.
    case redirect(host: String)
    /// A page was received where the stored copy has another type, or where the client accepts no page.
    case page(insteadOf: String)
    /// Content of a different kind than the stored copy was received.
    case content(String, insteadOf: String)

    /// Text for `Cache-Status`, the log and the reason in `captive`.
    package var detail: String {
        switch self {
        case .login: "511: the network asks for a login"
        case .redirect(let host): "redirected to \(host)"
        case .page(let type): "a page came in place of \(type)"
        case .content(let type, let stored): "\(type) came in place of \(stored)"
        }
    }

    /// Judges a response to `request` that came from the origin's address, given the stored responses of its key. Without a good (2xx) copy
    /// nothing can be lost, and redirects and pages are accepted. With one, a page is still accepted if the client names HTML in `Accept`,
    /// or if another stored copy selected by the request is a page too.
    /// - Parameter isDeclared: True if the upstream is declared, so that a probe can verify the suspicion. Then content of any other kind
    ///   than the stored copy's is suspect, and so is a page that the client does not accept.
    package static func judge(
        _ response: ResponseHead, to request: RequestHead, stored: [StoredResponse], isDeclared: Bool = false
    ) -> PortalSuspicion? {
        let good = stored.filter { (200...299).contains($0.head.status) }
        switch sign(in: response, origin: request.origin, target: request.target) {
        case .redirect where good.isEmpty: return nil
        case let sign?: return sign
        case nil: break
        }
        if isDeclared { return change(in: response, to: request, good: good) }
        guard (200...299).contains(response.status), MediaType.isPage(response.fields), !MediaType.isAskedForPages(request) else {
            return nil
        }
        let types = good.filter { Vary.matches(stored: $0, request: request) }.compactMap { MediaType.essence(of: $0.head.fields) }
        guard let type = types.first, !types.contains(where: MediaType.isPage) else { return nil }
        return .page(insteadOf: type)
    }

    private static func change(in response: ResponseHead, to request: RequestHead, good: [StoredResponse]) -> PortalSuspicion? {
        guard (200...299).contains(response.status) else { return nil }
        if response.status == 204 || response.status == 205 {
            // An origin that really means a temporary empty response gives it freshness (`Replacement`).
            if StoredResponse(head: response, requestTime: .distantPast, responseTime: .distantPast).validity.hasExplicitFreshness {
                return nil
            }
            let known = good.first { $0.head.status == 200 && $0.bodyLength > 0 && Vary.matches(stored: $0, request: request) }
            return known.map { .content("no content", insteadOf: MediaType.essence(of: $0.head.fields) ?? "content") }
        }
        guard let type = MediaType.essence(of: response.fields) else { return nil }
        let selected = good.filter { Vary.matches(stored: $0, request: request) }
        let stored = selected.compactMap { MediaType.essence(of: $0.head.fields) }
        guard let known = stored.first else {
            guard MediaType.isPage(type), let accepted = request.fields[.accept], !MediaType.isAskedForPages(request),
                !MediaType.isAccepted(response.fields, by: accepted)
            else { return nil }
            return .page(insteadOf: accepted)
        }
        if stored.contains(where: { MediaType.kind(of: $0) == MediaType.kind(of: type) }) { return nil }
        if MediaType.isPage(type) { return .page(insteadOf: known) }
        // An own write may have given the resource another type than its copy has.
        return selected.contains { $0.ownWrite != nil } ? nil : .content(type, insteadOf: known)
    }

    /// A portal's sign that does not depend on the request or the stored copies. A redirect within the host, even to https, is not one.
    static func sign(in response: ResponseHead, origin: OriginAddress, target: String) -> PortalSuspicion? {
        if response.status == 511 { return .login }
        guard (300...399).contains(response.status), response.status != 304, let location = response.fields[.location],
            let host = RedirectTarget(location, origin: origin, target: target).otherHost
        else { return nil }
        return .redirect(host: host)
    }
}
