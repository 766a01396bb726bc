// Matches requests with stored variants (RFC 9111 §4.1, RFC 9110 §12.5.5).
package import HTTPTypes

/// Selection by the request fields that `Vary` names.
package enum Vary {
    /// The request's fields that `response` varies by, normalised and sorted by name; fields absent from the request are missing. Nil if
    /// only the upstream can select: `*`, or a member that is not a field name.
    package static func selectingFields(response: ResponseHead, request: RequestHead) -> HTTPFields? {
        names(response.fields).map { selectingFields($0, of: request) }
    }

    /// The request's fields of these names, normalised and sorted by name.
    package static func selectingFields(_ names: [HTTPField.Name], of request: RequestHead) -> HTTPFields {
        var selecting = HTTPFields()
        for name in names.sorted(by: { $0.canonicalName < $1.canonicalName }) {
            guard let value = request.fields.value(of: name.canonicalName) else { continue }
            selecting.append(HTTPField(name: name, value: VaryNormalization.normalized(value, of: name)))
        }
        return selecting
    }

    /// True if `request` has the same field values that selected the stored variant.
    package static func matches(stored: StoredResponse, request: RequestHead) -> Bool {
        guard let names = stored.validity.varyNames else { return false }
        return names.allSatisfy { matches($0, stored, request) }
    }

    private static func matches(_ name: HTTPField.Name, _ stored: StoredResponse, _ request: RequestHead) -> Bool {
        switch (stored.requestFields.value(of: name.canonicalName), request.fields.value(of: name.canonicalName)) {
        case (nil, nil): true
        // Compares bytes, as keys do: `==` on strings treats canonically equivalent Unicode texts as equal.
        case (let kept?, let given?):
            kept.utf8.elementsEqual(given.utf8) || kept.utf8.elementsEqual(VaryNormalization.normalized(given, of: name).utf8)
        default: false
        }
    }

    /// True if a stored variant is usable for a client that would have selected another one: it differs only in a coding that the client
    /// accepts or this cache can decode, in language, or in an `Accept` that permits its type.
    static func mayStandIn(_ stored: StoredResponse, for request: RequestHead) -> Bool {
        guard let names = stored.validity.varyNames else { return false }
        let isSelected = names.allSatisfy { name in
            switch name {
            case .acceptEncoding, .acceptLanguage: true
            case .accept: matches(name, stored, request) || MediaType.isAccepted(stored.head.fields, by: request.fields[.accept] ?? "*/*")
            default: matches(name, stored, request)
            }
        }
        return isSelected && (ContentCoding.isAccepted(stored.head.fields, by: request) || ContentCoding.canBeDecoded(stored.head))
    }

    /// True if `newest` varies by a name that `stored`, an earlier response of the same key, does not: the earlier one is then not served
    /// while the upstream is reachable (RFC 9111 §4.1). Names added by `ImpliedVary` do not count.
    static func isOutdated(_ stored: StoredResponse, by newest: StoredResponse) -> Bool {
        guard let names = newest.validity.varyNames, let known = stored.validity.varyNames else { return false }
        return names.contains { !known.contains($0) && !ImpliedVary.isAdded($0) }
    }

    /// The language range, in lower case, that `request` prefers to all others, if the candidates differ only in language. A stored
    /// response in exactly this language is the one any server would select, whatever other languages the request accepts (RFC 9111 §4.1).
    static func onlyLanguage(_ candidates: [StoredResponse], request: RequestHead) -> String? {
        guard !candidates.isEmpty, candidates.allSatisfy({ $0.validity.varyNames == [.acceptLanguage] }) else { return nil }
        return request.fields.value(of: "accept-language").flatMap(VaryNormalization.favouriteLanguage)
    }

    /// The text that distinguishes the variants of a key: one line per field, so that different sets never share one text.
    package static func variantKey(_ selecting: HTTPFields) -> String {
        selecting.sorted { $0.name.canonicalName < $1.name.canonicalName }
            .map { "\($0.name.canonicalName): \($0.value)\n" }.joined()
    }

    /// The names in `Vary`, each once; nil if no request can be known to match.
    static func names(_ fields: HTTPFields) -> [HTTPField.Name]? {
        var names: [HTTPField.Name] = []
        for field in fields where field.name == .vary {
            for member in FieldList.members(of: field.value) {
                guard member != "*", let name = HTTPField.Name(String(member)) else { return nil }
                if !names.contains(name) { names.append(name) }
            }
        }
        return names
    }
}
