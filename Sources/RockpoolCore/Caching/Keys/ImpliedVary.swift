// Request fields that a response may depend on although its Vary does not name them (docs/security-model.md#unkeyed-inputs; RFC 9110
// §12.5.5).
import HTTPTypes

/// Completes the Vary of a response before it is stored.
///
/// If an origin uses one of these request fields to generate the response but omits it from Vary, the first client would determine the
/// response for all later clients. A repeated request with the same fields is still served from the cache.
package enum ImpliedVary {
    /// True if `completed` may have added `name` to Vary: added names are written in lower case.
    static func isAdded(_ name: HTTPField.Name) -> Bool { candidates.contains(name) && name.rawName == name.canonicalName }

    private static let candidates: [HTTPField.Name] = [.origin, .accept, .acceptEncoding, .cookie]

    /// `head` with a Vary that also names
    /// - `Accept-Encoding` if the content is coded: a client without that coding cannot read it;
    /// - `Origin` if the request carries one: few other clients send it, and permissions for one origin do not apply to another;
    /// - `Accept` if it does not permit the type of the response: then the preference or the response is unusual;
    /// - `Cookie` if the response is `private` and the request has Basic credentials: one password may be that of a whole site, and the user is
    ///   told by a cookie.
    /// - Parameter isPrivate: true if all of the response is `private`; evaluated only where it counts.
    package static func completed(_ head: ResponseHead, for request: RequestHead, isPrivate: @autoclosure () -> Bool) -> ResponseHead {
        guard let named = Vary.names(in: head.fields) else { return head }
        var completed = head
        for name in candidates where !named.contains(name) && isSuspected(name, in: head, to: request, isPrivate: isPrivate()) {
            completed.fields.append(HTTPField(name: .vary, value: name.canonicalName))
        }
        return completed
    }

    private static func isSuspected(
        _ name: HTTPField.Name, in head: ResponseHead, to request: RequestHead, isPrivate: @autoclosure () -> Bool
    ) -> Bool {
        if name == .acceptEncoding { return ContentCoding.isCoded(head.fields) }
        if name == .cookie { return request.fields[.authorization]?.prefix(6).lowercased() == "basic " && isPrivate() }
        guard let value = request.fields.value(of: name.canonicalName) else { return false }
        return name == .origin || !MediaType.isAccepted(head.fields, by: value)
    }
}
