// Selects among stored variants (RFC 9111 §4.1, RFC 9110 §12.5.5).
package import HTTPTypes

extension Vary {
    /// True if `request` has the field values that selected the stored variant, or differs from them only in content codings for which the
    /// variant serves as well.
    /// - Parameter isExact: True to compare codings like all other fields.
    package static func matches(stored: StoredResponse, request: RequestHead, isExact: Bool = false) -> Bool {
        guard let names = stored.validity.varyNames else { return false }
        return names.allSatisfy { name in
            matches(name, stored: stored, request: request) || !isExact && name == .acceptEncoding && suitsCodings(of: request, stored)
        } && isSelected(by: names, request)
    }

    /// True if any server may send the content as it is to the client, whatever it sends to others: it is in a coding that the client accepts, or
    /// was left without one for a client that accepts codings (RFC 9110 §12.5.3).
    private static func suitsCodings(of request: RequestHead, _ stored: StoredResponse) -> Bool {
        let wish = request.fields.value(of: "accept-encoding") ?? ""
        if ContentCoding.isCoded(stored.head.fields) { return ContentCoding.isAccepted(stored.head.fields, by: request) }
        let refusesPlain = FieldList.members(of: VaryNormalization.normalized(wish, of: .acceptEncoding)).contains {
            $0 == "identity;q=0" || $0 == "*;q=0"
        }
        return !refusesPlain && AcceptEncoding.acceptsAny(stored.requestFields.value(of: "accept-encoding"))
    }

    /// True if the request has no field that selects (`UnkeyedField`) but those of these names. A response to a request without one may be
    /// meant for nobody, or for everybody: an origin that reads the field has not seen it.
    private static func isSelected(by names: [HTTPField.Name], _ request: RequestHead) -> Bool {
        request.fields.selectingNames.allSatisfy(names.contains)
    }

    /// True if a stored response is one for the client of `request`, as far as the fields tell that select.
    package static func isOfSender(_ stored: StoredResponse, of request: RequestHead) -> Bool {
        let kept = HTTPFields(stored.requestFields.filter { UnkeyedField($0.name) == .selects })
        return variantKey(kept) == variantKey(selectingFields(request.fields.selectingNames, of: request))
    }

    /// The fields by which requests must be equal to share a response whose body is not known yet: those that select, and those that it may
    /// repeat.
    package static func unkeyedNames(of request: RequestHead) -> [HTTPField.Name] {
        let selecting = request.fields.selectingNames
        return selecting + HTTPFields(request.fields.filter { EchoSearch.isSearched($0) }).names(of: [.unknown])
    }

    private static func matches(_ name: HTTPField.Name, stored: StoredResponse, request: RequestHead) -> Bool {
        let kept = stored.requestFields.value(of: name.canonicalName)
        return areEqual(kept, request.fields.value(of: name.canonicalName)) || areEqual(kept, selectingValue(name, of: request))
    }

    /// Compares bytes, as keys do: `==` on strings treats canonically equivalent Unicode texts as equal.
    private static func areEqual(_ one: String?, _ other: String?) -> Bool {
        switch (one, other) {
        case (nil, nil): true
        case (let one?, let other?): one.utf8.elementsEqual(other.utf8)
        default: false
        }
    }

    /// True if a stored variant is usable for a client that would have selected another one: it differs only in a coding that the client
    /// accepts or this cache can decode, in language, or in an `Accept` that permits its type.
    package static func mayStandIn(_ stored: StoredResponse, for request: RequestHead) -> Bool {
        guard let names = stored.validity.varyNames else { return false }
        let isSelected = names.allSatisfy { name in
            switch name {
            case .acceptEncoding, .acceptLanguage: true
            case .accept:
                matches(name, stored: stored, request: request)
                    || MediaType.isAccepted(stored.head.fields, by: request.fields[.accept] ?? "*/*")
            default: matches(name, stored: stored, request: request)
            }
        }
        return isSelected && self.isSelected(by: names, request)
            && (ContentCoding.isAccepted(stored.head.fields, by: request) || ContentCoding.canBeDecoded(stored.head))
    }

    /// True if the request's `Accept` has room for the type of a stored response, or the response says by which `Accept` it was selected.
    /// Otherwise its origin may choose another type for this client without declaring it.
    package static func permitsType(of stored: StoredResponse, _ request: RequestHead) -> Bool {
        if stored.validity.varyNames?.contains(.accept) ?? true { return true }
        guard let accept = request.fields[.accept], !accept.contains(anyCase: "*/*") else { return true }
        return MediaType.essence(of: stored.head.fields) == nil || MediaType.isAccepted(stored.head.fields, by: accept)
    }

    /// True if `newest` varies by a name that `stored`, an earlier response of the same key, does not: the earlier one is then not served
    /// while the upstream is reachable (RFC 9111 §4.1). Names added by `ImpliedVary` do not count.
    static func isOutdated(_ stored: StoredResponse, by newest: StoredResponse) -> Bool {
        guard let names = newest.validity.varyNames, let known = stored.validity.varyNames else { return false }
        return names.contains { !known.contains($0) && !ImpliedVary.isAdded($0) }
    }

    /// The language range, in lower case, that `request` prefers to all others, if the candidates differ only in language. A stored
    /// response in exactly this language is the one any server would select, whatever other languages the request accepts (RFC 9111 §4.1).
    static func onlyLanguage(among candidates: [StoredResponse], request: RequestHead) -> String? {
        guard !candidates.isEmpty, candidates.allSatisfy({ $0.validity.varyNames == [.acceptLanguage] }),
            isSelected(by: [.acceptLanguage], request)
        else { return nil }
        return request.fields.value(of: "accept-language").flatMap(VaryNormalization.favouriteLanguage)
    }
}
