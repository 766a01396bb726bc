// Writes of pages that the upstream has not permitted: browsers send forms, text and `no-cors` requests without a preflight
// (docs/security-model.md#writes-of-other-sites).
import HTTPTypes

/// Decides whether a write of a page may wait in the outbox. While the upstream is reachable it decides itself.
package enum CrossSiteWrite {
    /// The reason why the write must not be queued; nil if it may.
    ///
    /// - Parameters:
    ///   - grant: The permissions of the page's origin.
    ///   - isOwnPage: Returns true for an origin under which the upstream's own pages are seen.
    package static func obstacle(
        to request: RequestHead, grant: CrossOriginGrant?, isOwnPage: (String) -> Bool
    ) -> String? {
        let site = request.fields[.secFetchSite]?.lowercased()
        if site == "same-origin" || site == "none" { return nil }
        guard request.fields.contains(.origin) else {
            return site == "cross-site" ? "a page of another site sent it without the API's permission" : nil
        }
        guard let origin = request.fields.single(.origin) else { return "it names more than one origin" }
        if isOwnPage(origin) { return nil }
        guard let grant, grant.isAllowed else { return "the API has not allowed pages of \(shown(origin)) (CORS)" }
        guard grant.allows(method: request.method.rawValue) else {
            return "the API has not allowed \(request.method.rawValue) to pages of \(shown(origin)) (CORS)"
        }
        guard grant.allowsCredentials || !request.fields.contains(.cookie) else {
            return "the API has not allowed pages of \(shown(origin)) to send cookies (CORS)"
        }
        return nil
    }

    private static func shown(_ origin: String) -> String { String(origin.prefix(CrossOriginRequest.originLimit)) }
}
