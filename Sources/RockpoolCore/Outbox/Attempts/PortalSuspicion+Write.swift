// Detects a portal in the response to a write (docs/outbox.md#portals).
import HTTPTypes

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
