// Ranks stored responses by the language that a client prefers (RFC 9110 §12.5.4, RFC 4647 §3).
import HTTPTypes

/// The order in which a client prefers languages.
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
