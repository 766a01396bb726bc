// Whether an answer comes from a captive portal or a login page instead of the upstream (design §5, *Never let a good copy be
// overwritten*; RFC 6585 §6).
import HTTPTypes

/// Why an answer is taken for somebody else's. It is relayed, but never stored.
package enum PortalSuspicion: Hashable, Sendable {
    /// 511.
    case login
    /// Redirected to another host.
    case redirect(host: String)
    /// A page came where the stored copy is of another type, or where none was asked for.
    case page(insteadOf: String)
    /// Content of another kind came than is stored.
    case content(String, insteadOf: String)

    /// For `Cache-Status`, the log and `captive`'s reason.
    package var detail: String {
        switch self {
        case .login: "511: the network asks for a login"
        case .redirect(let host): "redirected to \(host)"
        case .page(let type): "a page came in place of \(type)"
        case .content(let type, let stored): "\(type) came in place of \(stored)"
        }
    }

    /// Judges what the origin's address answered to `request`, given the stored responses of its key. Without a good copy (2xx) there
    /// is nothing to lose, and redirects and pages are what they seem. With one, a page is still no surprise to a client that names
    /// HTML in `Accept`, and says nothing where another copy the request selects is a page too.
    /// - Parameter isDeclared: Whether the upstream is declared, so that a probe can tell: then content of any other kind than what is
    ///   stored is doubted, and a page that the client does not take.
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
        let types = good.filter { Vary.matches(stored: $0, request: request) }.compactMap { MediaType.essence($0.head.fields) }
        guard let type = types.first, !types.contains(where: MediaType.isPage) else { return nil }
        return .page(insteadOf: type)
    }

    /// Why an answer to a write did not come from the upstream, by all appearance; nil when nothing speaks against it.
    package static func judge(_ response: ResponseHead, toWrite request: RequestHead) -> String? {
        Answer(head: response, bodyStart: [], request: request).portal
    }

    private static func change(in response: ResponseHead, to request: RequestHead, good: [StoredResponse]) -> PortalSuspicion? {
        guard (200...299).contains(response.status) else { return nil }
        if response.status == 204 || response.status == 205 {
            // One that the origin stands by for a while says so (`Replacement`).
            if StoredResponse(head: response, requestTime: .distantPast, responseTime: .distantPast).validity.hasExplicitFreshness {
                return nil
            }
            let known = good.first { $0.head.status == 200 && $0.bodyLength > 0 && Vary.matches(stored: $0, request: request) }
            return known.map { .content("no content", insteadOf: MediaType.essence($0.head.fields) ?? "content") }
        }
        guard let type = MediaType.essence(response.fields) else { return nil }
        let stored = good.filter { Vary.matches(stored: $0, request: request) }.compactMap { MediaType.essence($0.head.fields) }
        guard let known = stored.first else {
            guard MediaType.isPage(type), let accepted = request.fields[.accept], !MediaType.isAskedForPages(request),
                !MediaType.isAccepted(response.fields, by: accepted)
            else { return nil }
            return .page(insteadOf: accepted)
        }
        if stored.contains(where: { MediaType.kind(of: $0) == MediaType.kind(of: type) }) { return nil }
        return MediaType.isPage(type) ? .page(insteadOf: known) : .content(type, insteadOf: known)
    }

    /// What a portal shows whatever was asked and whatever is stored. A redirect within the host, be it to https, is none.
    static func sign(in response: ResponseHead, origin: OriginAddress, target: String) -> PortalSuspicion? {
        if response.status == 511 { return .login }
        guard (300...399).contains(response.status), response.status != 304, let location = response.fields[.location],
            let host = RedirectTarget(location, origin: origin, target: target).otherHost
        else { return nil }
        return .redirect(host: host)
    }
}
