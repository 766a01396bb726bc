// Request fields that a response may depend on although its Vary does not name them (docs/security-model.md#unkeyed-inputs; RFC 9110
// §12.5.5).
package import HTTPTypes

/// Completes the Vary of a response before it is stored.
///
/// If an origin uses one of these request fields to generate the response but omits it from Vary, the first client would determine the
/// response for all later clients. A repeated request with the same fields is still served from the cache.
package enum ImpliedVary {
    /// True if a name may have been added to Vary: added names are written in lower case.
    static func isAdded(_ name: HTTPField.Name) -> Bool {
        guard name.rawName == name.canonicalName else { return false }
        let kind = UnkeyedField(name)
        return candidates.contains(name) || [.selects, .unknown].contains(kind)
    }

    private static let candidates: [HTTPField.Name] = [.origin, .accept, .acceptEncoding, .cookie, .gitProtocol]

    /// `head` with a Vary that also names
    /// - `Accept-Encoding` if the content is coded: a client without that coding cannot read it;
    /// - `Origin` if the request carries one: few other clients send it, and permissions for one origin do not apply to another;
    /// - `Accept` if it does not permit the type of the response, or not that of another stored response of the key: then the preference or the
    ///   response is unusual, or the origin selects the type by it;
    /// - `Cookie` if the response is `private` and the request has Basic credentials: one password may be that of a whole site, and the user is
    ///   told by a cookie;
    /// - `Git-Protocol` if the response is one of git: it selects the version of the protocol, which an older client cannot read;
    /// - every field of the request that selects, and every one whose value the head repeats (`UnkeyedField`, `EchoSearch`).
    /// - Parameters:
    ///   - selectsType: true if another stored response of the key has a type that the request's `Accept` does not permit.
    ///   - isPrivate: true if all of the response is `private`; evaluated only where it counts.
    package static func completed(
        _ head: ResponseHead, for request: RequestHead, selectsType: Bool = false, isPrivate: @autoclosure () -> Bool
    ) -> ResponseHead {
        guard let named = Vary.names(in: head.fields) else { return head }
        let suspected = candidates.filter {
            !named.contains($0)
                && ($0 == .accept && selectsType || isSuspected($0, in: head, to: request, isPrivate: isPrivate()))
        }
        var search = EchoSearch(for: request)
        search?.read(head)
        return varying(head, by: suspected + request.fields.selectingNames + (search?.found ?? []))
    }

    /// `head` with a Vary that also has these names.
    package static func varying(_ head: ResponseHead, by names: [HTTPField.Name]) -> ResponseHead {
        guard !names.isEmpty, var named = Vary.names(in: head.fields) else { return head }
        var varying = head
        for name in names where !named.contains(name) {
            varying.fields.append(HTTPField(name: .vary, value: name.canonicalName))
            named.append(name)
        }
        return varying
    }

    private static func isSuspected(
        _ name: HTTPField.Name, in head: ResponseHead, to request: RequestHead, isPrivate: @autoclosure () -> Bool
    ) -> Bool {
        if name == .gitProtocol { return RepositoryExchange.part(head) == .fetch }
        if name == .acceptEncoding { return ContentCoding.isCoded(head.fields) }
        if name == .cookie { return request.fields[.authorization]?.prefix(6).lowercased() == "basic " && isPrivate() }
        guard let value = request.fields.value(of: name.canonicalName) else { return false }
        return name == .origin || !MediaType.isAccepted(head.fields, by: value)
    }
}
