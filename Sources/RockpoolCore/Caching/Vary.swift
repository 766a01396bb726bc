// Matches requests with stored variants (RFC 9111 §4.1, RFC 9110 §12.5.5).
package import HTTPTypes

/// Selection by the request fields that `Vary` names.
package enum Vary {
    /// The request's fields that `response` varies by, normalised and sorted by name; fields absent from the request are missing. Nil if
    /// only the upstream can select: `*`, or a member that is not a field name.
    package static func selectingFields(response: ResponseHead, request: RequestHead) -> HTTPFields? {
        names(in: response.fields).map { selectingFields($0, of: request) }
    }

    /// The request's fields of these names, normalised and sorted by name.
    package static func selectingFields(_ names: [HTTPField.Name], of request: RequestHead) -> HTTPFields {
        var selecting = HTTPFields()
        for name in names.sorted(by: { $0.canonicalName < $1.canonicalName }) {
            guard let value = selectingValue(name, of: request) else { continue }
            selecting.append(HTTPField(name: name, value: value))
        }
        return selecting
    }

    /// The request's normalised value of a field; nil if it is absent, or has only cookies that identify no user.
    static func selectingValue(_ name: HTTPField.Name, of request: RequestHead) -> String? {
        request.fields.value(of: name.canonicalName).flatMap { selectingValue($0, of: name) }
    }

    static func selectingValue(_ value: String, of name: HTTPField.Name) -> String? {
        let normalized = VaryNormalization.normalized(value, of: name)
        return name == .cookie && normalized.isEmpty ? nil : normalized
    }

    /// The text that distinguishes the variants of a key: one line per field, so that different sets never share one text. The rule of a route
    /// makes no variant.
    package static func variantKey(_ selecting: HTTPFields) -> String {
        selecting.filter { $0.name != .rockpoolLifetime }.sorted { $0.name.canonicalName < $1.name.canonicalName }
            .map { "\($0.name.canonicalName): \($0.value)\n" }.joined()
    }

    /// True if both have the same `variantKey`.
    package static func isSameVariant(_ one: HTTPFields, _ other: HTTPFields) -> Bool {
        one == other || variantKey(one) == variantKey(other)
    }

    /// The names in `Vary`, each once; nil if no request can be known to match.
    static func names(in fields: HTTPFields) -> [HTTPField.Name]? {
        var names: [HTTPField.Name] = []
        for field in fields where field.name == .vary {
            for member in FieldList.members(of: field.value) {
                guard member != "*", let name = HTTPField.Name(String(member)) else { return nil }
                if !names.contains(name) { names.append(name) }
            }
        }
        return names
    }

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
                    || MediaType.isAccepted(stored.head.fields, by: request.fields.value(of: "accept") ?? "*/*")
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
        guard let accept = request.fields.value(of: "accept"), !accept.contains(anyCase: "*/*") else { return true }
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

/// Variants by a credential: selected by the name of its value, so that the value itself is stored nowhere (RFC 9111 §4.1, §7.3).
extension Vary {
    /// True when one of the responses was selected by a field that carries a secret.
    package static func isBySecret(_ candidates: [StoredResponse]) -> Bool {
        candidates.contains { $0.requestFields.contains { SecretFields.contains($0.name) } }
    }

    /// The fields with the value of each secret one replaced; without a `Cookie` that identifies no user.
    /// - Parameter name: gives the name of a value: the same for the same value, and nothing that the value can be had from.
    package static func veiled(_ fields: HTTPFields, by name: (String) -> String) -> HTTPFields {
        HTTPFields(
            fields.compactMap { field in
                guard SecretFields.contains(field.name) else { return field }
                return selectingValue(field.value, of: field.name).map { HTTPField(name: field.name, value: name($0)) }
            })
    }

    /// A response of the client's own partition as if it had been requested with the credential of `request`: the partition already
    /// decides that it is this client's, whether its token was renewed or, with `identity: cookie:NAME`, another cookie has changed.
    /// - Parameter isByAuthorization: true if `Authorization` alone names the partition: cookies may be those of another user.
    package static func forOwner(_ stored: StoredResponse, request: RequestHead, isByAuthorization: Bool) -> StoredResponse {
        guard let names = stored.validity.varyNames else { return stored }
        var own = stored
        for name in names where isByAuthorization ? name == .authorization : SecretFields.identifies(name) {
            own.requestFields[name] = request.fields[name]
        }
        return own
    }
}

/// Normalises request field values, so that values with the same meaning select the same variant (RFC 9111 §4.1).
enum VaryNormalization {
    /// `value` in the form used for selection. Of fields with unknown syntax only surrounding whitespace is removed.
    static func normalized(_ value: String, of name: HTTPField.Name) -> String {
        switch name {
        // No coding or language has a quotation mark: in another order it would take in what followed it.
        case .acceptEncoding where value.utf8.contains(0x22), .acceptLanguage where value.utf8.contains(0x22):
            String(FieldList.trimmed(value[...]))
        case .acceptEncoding: acceptEncoding(value)
        case .acceptLanguage: acceptLanguage(value)
        case .accept: FieldList.members(of: value).joined(separator: ", ")
        case .origin: String(FieldList.trimmed(value[...])).lowercased()
        case .cookie: CookieCrumbs.removed(from: String(FieldList.trimmed(value[...])))
        default: String(FieldList.trimmed(value[...]))
        }
    }

    /// The accepted codings, sorted by name: names are case-insensitive, `x-gzip` equals `gzip` (RFC 9110 §8.4.1.3, §12.5.3), and the
    /// client's preference among them does not change the content. A refusal by `q=0` is dropped, because an unlisted coding is refused
    /// anyway, unless it refers to `identity` or `*`, or `*` would otherwise accept the coding.
    static func acceptEncoding(_ value: String) -> String {
        if let plain = AcceptEncoding.plain(value) { return plain }
        let preferences = preferences(in: value)
        let takesAny = preferences.contains { $0.name == "*" && $0.weight != 0 }
        let codings = preferences.compactMap { preference -> String? in
            guard let weight = preference.weight else { return preference.text }
            let name = ["x-gzip", "x-compress"].contains(preference.name) ? String(preference.name.dropFirst(2)) : preference.name
            if weight > 0 { return name }
            return takesAny || name == "identity" || name == "*" ? name + ";q=0" : nil
        }
        return Set(codings).sorted().joined(separator: ", ")
    }

    /// Ranges in order of their weights. The weights themselves are dropped, except the `q=0` of refused ranges. The order of equal weights
    /// is kept, because some servers prefer the first (RFC 9110 §12.5.4).
    static func acceptLanguage(_ value: String) -> String {
        let preferences = preferences(in: value)
        guard preferences.allSatisfy({ $0.weight != nil }) else { return preferences.map(\.text).joined(separator: ", ") }
        return preferences.enumerated()
            .sorted { ($1.element.weight ?? 0, $0.offset) < ($0.element.weight ?? 0, $1.offset) }
            .map { $0.element.weight == 0 ? $0.element.name + ";q=0" : $0.element.name }.joined(separator: ", ")
    }

    /// The single language range, in lower case, with a greater weight than every other; nil if there is none, or it is `*`.
    static func favouriteLanguage(in value: String) -> String? {
        let preferences = preferences(in: value)
        guard let best = preferences.max(by: { ($0.weight ?? 0) < ($1.weight ?? 0) }), let weight = best.weight, weight > 0,
            best.name != "*", preferences.allSatisfy({ $0.weight != nil }), preferences.count(where: { $0.weight == weight }) == 1
        else { return nil }
        return best.name
    }

    /// One member of a list of preferences.
    struct Preference {
        /// In lower case.
        let name: String
        /// Thousandths; nil if the member is unreadable.
        let weight: Int?
        /// The whole member in lower case, without spaces around its parameters.
        let text: String
    }

    static func preferences(in value: String) -> [Preference] {
        FieldList.members(of: value).map { member in
            let member = member.lowercased()
            guard member.utf8.contains(0x3B) else { return Preference(name: member, weight: 1000, text: member) }
            let parts = member.split(separator: ";", omittingEmptySubsequences: false).map { FieldList.trimmed($0) }
            let isReadable = parts.count == 2 && !parts[0].isEmpty && parts[1].hasPrefix("q=")
            let weight = isReadable ? thousandths(of: parts[1].dropFirst(2)) : nil
            return Preference(name: String(parts[0]), weight: weight, text: parts.joined(separator: ";"))
        }
    }

    /// A weight in thousandths; nil if it is not a valid weight (RFC 9110 §12.4.2).
    private static func thousandths(of weight: Substring) -> Int? {
        let parts = weight.split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = parts.first, whole == "0" || whole == "1", parts.count <= 2 else { return nil }
        let fraction = parts.count == 2 ? parts[1] : ""
        guard fraction.utf8.count <= 3, fraction.utf8.allSatisfy(FieldByte.isDigit) else { return nil }
        let padded = fraction + String(repeating: "0", count: 3 - fraction.utf8.count)
        guard let value = Int(whole + padded), value <= 1000 else { return nil }
        return value
    }
}

/// The order in which a client prefers languages (RFC 9110 §12.5.4, RFC 4647 §3).
enum LanguagePreference {
    /// The rank of a stored response by its language: of the weight of the range that fits it best, then of the range's place among those of
    /// the same weight; zero for a language that the client does not name, less for one that it refuses. All responses are equal where the
    /// client states no preference.
    ///
    /// A response without `Content-Language` is taken to be in the language that was preferred by the request for it.
    static func rank(of stored: StoredResponse, for request: RequestHead) -> Int {
        guard let wish = request.fields.value(of: "accept-language") else { return 0 }
        let named = stored.head.fields.value(of: "content-language").map { FieldList.members(of: $0).map { $0.lowercased() } }
        let asked = stored.requestFields.value(of: "accept-language").flatMap { VaryNormalization.preferences(in: $0).first?.name }
        return (named ?? [asked].compactMap(\.self)).map { rank(of: $0, in: wish) }.max() ?? 0
    }

    /// - Parameter language: in lower case.
    private static func rank(of language: String, in wish: String) -> Int {
        let fits = VaryNormalization.preferences(in: wish).enumerated().compactMap { place, preference in
            fit(of: language, to: preference.name).map { (fit: $0, weight: preference.weight ?? 0, place: place) }
        }
        guard let best = fits.max(by: { ($0.fit, $0.weight) < ($1.fit, $1.weight) }) else { return 0 }
        return best.weight == 0 ? -1 : best.weight * 1000 - min(best.place, 999)
    }

    /// The length in bytes of what a range and a language have in common: `de` is within `de-CH`, and stands in for it. Nil if neither
    /// contains the other.
    private static func fit(of language: String, to range: String) -> Int? {
        if range == "*" { return 0 }
        let isWithin = { (part: String, whole: String) in whole == part || whole.hasPrefix(part + "-") }
        return isWithin(range, language) || isWithin(language, range) ? min(range.utf8.count, language.utf8.count) : nil
    }
}
