// Which requests a stored variant answers (RFC 9111 §4.1, RFC 9110 §12.5.5).
package import HTTPTypes

/// Selection by the request fields that `Vary` names.
package enum Vary {
    /// The request's fields that `response` varies by, normalised and in order of their names; those the request lacks are missing.
    /// Nil when nothing but the upstream can select: `*`, or a member that is no field name.
    package static func selectingFields(response: ResponseHead, request: RequestHead) -> HTTPFields? {
        names(response.fields).map { selectingFields($0, of: request) }
    }

    /// The request's fields of these names, normalised and in order of their names.
    package static func selectingFields(_ names: [HTTPField.Name], of request: RequestHead) -> HTTPFields {
        var selecting = HTTPFields()
        for name in names.sorted(by: { $0.canonicalName < $1.canonicalName }) {
            guard let value = request.fields.value(of: name.canonicalName) else { continue }
            selecting.append(HTTPField(name: name, value: VaryNormalization.normalized(value, of: name)))
        }
        return selecting
    }

    /// Whether `request` has the fields the stored variant was selected by.
    package static func matches(stored: StoredResponse, request: RequestHead) -> Bool {
        guard let names = stored.validity.varyNames else { return false }
        return names.allSatisfy { matches($0, stored, request) }
    }

    private static func matches(_ name: HTTPField.Name, _ stored: StoredResponse, _ request: RequestHead) -> Bool {
        switch (stored.requestFields.value(of: name.canonicalName), request.fields.value(of: name.canonicalName)) {
        case (nil, nil): true
        // By bytes, as their keys are: `==` takes texts for the same that only Unicode does.
        case (let kept?, let given?):
            kept.utf8.elementsEqual(given.utf8) || kept.utf8.elementsEqual(VaryNormalization.normalized(given, of: name).utf8)
        default: false
        }
    }

    /// Whether a stored variant is of use to a client that would have selected another: what it differs by is coding, which the client
    /// takes, language, or an `Accept` that has room for its type.
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

    /// Names that a later response declares, and that an earlier one of the same key does not: since then the earlier one answers nobody
    /// while the upstream can be asked (RFC 9111 §4.1).
    static func isOutdated(_ stored: StoredResponse, by newest: StoredResponse) -> Bool {
        guard let names = newest.validity.varyNames, let known = stored.validity.varyNames else { return false }
        return names.contains { !known.contains($0) && !ImpliedVary.isAdded($0) }
    }

    /// The language, in lower case, that `request` likes best of all, where nothing but language tells the candidates apart. A stored
    /// response in exactly this language is what any server would choose, whatever else the request would have taken (RFC 9111 §4.1).
    static func onlyLanguage(_ candidates: [StoredResponse], request: RequestHead) -> String? {
        guard !candidates.isEmpty, candidates.allSatisfy({ $0.validity.varyNames == [.acceptLanguage] }) else { return nil }
        return request.fields.value(of: "accept-language").flatMap(VaryNormalization.favouriteLanguage)
    }

    /// What tells one variant of a key from the others: a line for each field, so that no two sets share one text.
    package static func variantKey(_ selecting: HTTPFields) -> String {
        selecting.sorted { $0.name.canonicalName < $1.name.canonicalName }
            .map { "\($0.name.canonicalName): \($0.value)\n" }.joined()
    }

    /// The names in `Vary`, each once; nil when no request can be known to match.
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
