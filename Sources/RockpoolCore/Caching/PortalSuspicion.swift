// Detects responses that may come from a captive portal or a login page instead of the upstream (docs/caching.md#portals-and-probes; RFC
// 6585 §6).
import HTTPTypes

/// A sign that a response does not come from the upstream: 511, a redirect to another host in place of what is not a page, or a page in
/// place of what is not a page. Never anything in place of a page, never one type that is not a page in place of another, and never a
/// response without a body.
package struct PortalSuspicion: Hashable, Sendable {
    package enum Sign: Hashable, Sendable {
        /// 511.
        case login
        /// Redirected to another host.
        case redirect(host: String)
        /// A page was received in place of this type, or of what this `Accept` permits.
        case page(insteadOf: String)
    }

    /// The evidence against the response, which decides what the suspicion may affect.
    package enum Basis: Hashable, Sendable {
        /// The status itself: 511.
        case status
        /// A stored good copy that is not a page. The copy is served, and a second URL with such a sign concerns the whole upstream.
        case copy
        /// The same, but the client asks for pages: the response is passed on, and does not replace the copy.
        case copyOfOtherClients
        /// Only `Accept`: the response is passed on unstored.
        case accept
    }

    package let sign: Sign
    package let basis: Basis

    package init(_ sign: Sign, basis: Basis) { (self.sign, self.basis) = (sign, basis) }

    /// Text for `Cache-Status`, the log and the reason in `captive`.
    package var detail: String {
        switch sign {
        case .login: "511: the network asks for a login"
        case .redirect(let host): "redirected to \(host)"
        case .page(let type): "a page came in place of \(type)"
        }
    }

    /// True if the client gets a stored response in place of this one.
    package var concernsReply: Bool { basis == .status || basis == .copy }

    /// Judges a response to a read that came from the origin's address; nil without a sign.
    /// - Parameters:
    ///   - stored: The stored responses of its key. Only good (2xx) ones that `request` selects count.
    ///   - hasBody: False if the response is known to have no body.
    package static func judge(
        _ response: ResponseHead, to request: RequestHead, stored: [StoredResponse], hasBody: Bool = true
    ) -> PortalSuspicion? {
        if response.status == 511 { return PortalSuspicion(.login, basis: .status) }
        let types = stored.filter { (200...299).contains($0.head.status) && Vary.matches(stored: $0, request: request) }
            .compactMap { MediaType.essence(of: $0.head.fields) }
        let isPlaceOfPages = types.contains(where: MediaType.isPage)
        guard !isPlaceOfPages, let sign = sign(in: response, to: request, type: types.first, hasBody: hasBody) else { return nil }
        if types.isEmpty { return PortalSuspicion(sign, basis: .accept) }
        return PortalSuspicion(sign, basis: MediaType.isAskedForPages(request) ? .copyOfOtherClients : .copy)
    }

    /// - Parameter type: The type in whose place the response was received; nil if nothing is stored. Without it a redirect is no sign,
    ///   because downloads of many upstreams are stored at other hosts.
    private static func sign(in response: ResponseHead, to request: RequestHead, type: String?, hasBody: Bool) -> Sign? {
        if type != nil, let host = redirectHost(in: response, origin: request.origin, target: request.target) {
            return .redirect(host: host)
        }
        guard isPage(response, hasBody: hasBody) else { return nil }
        if let type { return .page(insteadOf: type) }
        guard let accept = request.fields[.accept], !MediaType.isAccepted(response.fields, by: accept) else { return nil }
        return .page(insteadOf: accept)
    }

    /// True for a 2xx with an HTML body.
    package static func isPage(_ response: ResponseHead, hasBody: Bool) -> Bool {
        (200...299).contains(response.status) && ![204, 205].contains(response.status) && hasBody && MediaType.isPage(response.fields)
    }

    /// The other host that a redirect leads to. A redirect within the host, even to https, leads to none.
    static func redirectHost(in response: ResponseHead, origin: OriginAddress, target: String) -> String? {
        guard (300...399).contains(response.status), response.status != 304, let location = response.fields[.location] else { return nil }
        return RedirectTarget(location, origin: origin, target: target).otherHost
    }

    /// True if a response shows that the upstream itself answers: a 304, or a 2xx that is not a page.
    package static func showsUpstream(_ response: ResponseHead, hasBody: Bool) -> Bool {
        response.status == 304 || (200...299).contains(response.status) && !isPage(response, hasBody: hasBody)
    }
}

/// The source of an answer that shows a portal's sign.
package enum AnswerSource: Hashable, Sendable {
    case upstream
    /// A portal or a login page, for the reason in `detail`.
    case portal(detail: String)
    /// Neither is shown.
    case unknown(detail: String)
}

/// Judges whether a probe's response comes from the upstream (docs/reference/behaviour.md#reachability).
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

// Detects a portal in the response to a write (docs/outbox.md#portals).
extension PortalSuspicion {
    /// Judges the response to a write; nil without a sign: 511, a redirect to another host, or a page where the client expects none.
    /// - Parameter bodyStart: The first bytes of the body, decoded; nil if they are not known. A body that does not begin like a page is
    ///   none, whatever type it claims: many frameworks call every text `text/html`.
    package static func judge(_ response: ResponseHead, toWrite request: RequestHead, bodyStart: [UInt8]?) -> PortalSuspicion? {
        if response.status == 511 { return PortalSuspicion(.login, basis: .status) }
        if let host = redirectHost(in: response, origin: request.origin, target: request.target) {
            return PortalSuspicion(.redirect(host: host), basis: .copy)
        }
        guard isPage(response, hasBody: true), bodyStart.map(beginsLikePage) ?? true,
            let type = typeExpected(by: request, insteadOf: response)
        else { return nil }
        return PortalSuspicion(.page(insteadOf: type), basis: .accept)
    }

    private static func beginsLikePage(_ body: [UInt8]) -> Bool {
        let start = body.starts(with: [0xEF, 0xBB, 0xBF]) ? body.dropFirst(3) : body[...]
        return start.first { !FieldByte.isSpace($0) && $0 != 0x0A && $0 != 0x0D } == UInt8(ascii: "<")
    }

    /// The type that the client of a write expects; nil if a page may be an answer to it. `Accept` says it, or else the write's own type.
    private static func typeExpected(by request: RequestHead, insteadOf page: ResponseHead) -> String? {
        if let accept = request.fields[.accept] {
            if accept.contains(anyCase: "html") { return nil }
            if accept.contains(anyCase: "json") || !MediaType.isAccepted(page.fields, by: accept) { return accept }
        }
        guard let type = MediaType.essence(of: request.fields), type.contains("json") else { return nil }
        return type
    }
}
