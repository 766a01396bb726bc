// RFC 9111 §4.1: selection of variants, and normalization of field values.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct VaryTests {
    @Test(arguments: [
        ("", "", "A: 1", true), ("Vary: A", "A: 1", "A: 1", true), ("Vary: A", "A: 1", "A: 2", false), ("Vary: A", "A: 1", "", false),
        ("Vary: A", "", "A: 1", false), ("Vary: A", "", "", true), ("Vary: A", "A:", "", false), ("Vary: a", "A: 1", "a: 1", true),
        ("Vary: A, B", "A: 1 | B: 2", "B: 2 | A: 1", true), ("Vary: A, B", "A: 1 | B: 2", "A: 1", false),
        ("Vary: A | Vary: B", "A: 1 | B: 2", "A: 1 | B: 3", false), ("Vary: A,,B, a", "A: 1", "A: 1", true),
        ("Vary: A", "A: 1", "A:   1\t", true), ("Vary: A", "A: 1 | A: 2", "A: 1, 2", true),
        ("Vary: A", "A: 1 | A: 2", "A: 2 | A: 1", false),
        ("Vary: A", "A: x", "A: X", false), ("Vary: A", "A: 1,2", "A: 1, 2", false), ("Vary: *", "", "", false),
        ("Vary: A, *", "A: 1", "A: 1", false),
        ("Vary: A b", "", "", false),
        // Fields with a known syntax.
        ("Vary: Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: br,GZIP", true),
        ("Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: x-gzip;q=1.0", true),
        ("Vary: Accept-Encoding", "Accept-Encoding: gzip;q=0.50", "Accept-Encoding: gzip; q=0.5", true),
        ("Vary: Accept-Encoding", "Accept-Encoding: gzip;q=0", "Accept-Encoding: gzip", false),
        ("Vary: Accept-Encoding", "Accept-Encoding: gzip;q=0.5, br", "Accept-Encoding: br;q=0.1 ,gzip", true),
        // What was left without a coding for a client that accepts one serves all that do not refuse it.
        ("Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip, br", true),
        ("Vary: Accept-Encoding", "Accept-Encoding: gzip", "", true), ("Vary: Accept-Encoding", "", "Accept-Encoding: gzip", false),
        ("Vary: Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: br, identity;q=0", false),
        ("Vary: Accept-Encoding", "Accept-Encoding: identity", "Accept-Encoding: gzip", false),
        // A coding serves whoever accepts it.
        ("Vary: Accept-Encoding | Content-Encoding: gzip", "Accept-Encoding: gzip", "Accept-Encoding: gzip, deflate, br, zstd", true),
        ("Vary: Accept-Encoding | Content-Encoding: gzip", "Accept-Encoding: gzip", "Accept-Encoding: *", true),
        ("Vary: Accept-Encoding | Content-Encoding: gzip", "Accept-Encoding: gzip, br", "Accept-Encoding: gzip;q=0.1", true),
        ("Vary: Accept-Encoding | Content-Encoding: br", "Accept-Encoding: gzip, br", "Accept-Encoding: gzip", false),
        ("Vary: Accept-Encoding | Content-Encoding: gzip", "Accept-Encoding: gzip", "", false),
        ("Vary: Accept-Encoding, A | Content-Encoding: gzip", "Accept-Encoding: gzip | A: 1", "Accept-Encoding: gzip, br | A: 2", false),
        ("Vary: Accept-Language", "Accept-Language: de-DE, en;q=0.8", "Accept-Language: de-de,EN;q=0.80", true),
        ("Vary: Accept-Language", "Accept-Language: de, en", "Accept-Language: en, de", false),
        ("Vary: Accept-Language", "Accept-Language: de, en;q=0.5", "Accept-Language: en;q=0.1, de;q=0.9", true),
        ("Vary: Accept-Language", "Accept-Language: de, en;q=0.5", "Accept-Language: en, de;q=0.5", false),
        ("Vary: Accept-Language", "Accept-Language: de, en;q=0.5", "Accept-Language: en;q=0.5,de;q=1", true),
        ("Vary: Accept-Language", "Accept-Language: de, en;q=0.5, fr;q=0.5", "Accept-Language: fr;q=0.5, en;q=0.5, de", false),
        ("Vary: Accept-Language", "Accept-Language: de;q=x, en", "Accept-Language: en, de;q=x", false),
        ("Vary: Accept-Language", "Accept-Language: de;q=1.000", "Accept-Language: DE", true),
        ("Vary: Accept-Language", "Accept-Language: de;q=1.001", "Accept-Language: de", false),
        ("Vary: Accept-Language", "Accept-Language: de, en;q=0", "Accept-Language: de", false),
        ("Vary: Accept", "Accept: text/html,a/b;x=\"1,2\"", "Accept: text/html , a/b;x=\"1,2\"", true),
        ("Vary: Accept", "Accept: a/b;x=\"1,2\"", "Accept: a/b;x=\"1, 2\"", false),
        ("Vary: Accept", "Accept: a/b;x=Y", "Accept: a/b;x=y", false),
        ("Vary: Cookie", "Cookie: a=1; b=2", "Cookie: a=1; b=2", true), ("Vary: Cookie", "Cookie: a=1", "Cookie: a=2", false),
        // Cookies that identify no user.
        ("Vary: Cookie", "Cookie: _ga=1; a=1", "Cookie: a=1; _ga=2; _gid=3", true), ("Vary: Cookie", "Cookie: _ga=1", "", true),
        ("Vary: Cookie", "", "Cookie: _ga=1", true), ("Vary: Cookie", "Cookie: _ga=1; a=1", "Cookie: _ga=1", false),
        // Canonically equivalent in Unicode, but different bytes.
        ("Vary: A", "A: \u{E9}", "A: e\u{301}", false), ("Vary: A", "A: \u{E9}", "A: \u{E9}", true),
    ])
    func matches(_ response: String, stored: String, given: String, isMatch: Bool) {
        let variant = CachingFixture.stored(response, for: stored)
        #expect(Vary.matches(stored: variant, request: CachingFixture.request(given)) == isMatch)
    }

    @Test func aVariantForTheSameCodingsGoesFirst() {
        let candidates = ["gzip", "gzip, br"].enumerated().map { index, codings in
            CachingFixture.stored("Cache-Control: max-age=60 | Vary: Accept-Encoding | Date: @\(index)", for: "Accept-Encoding: \(codings)")
        }
        for (codings, expected) in [("gzip", 0), ("br, gzip", 1), ("zstd", 1)] {
            let decision = Reuse.decide(
                candidates: candidates, request: CachingFixture.request("Accept-Encoding: \(codings)"), context: ReuseContext(),
                now: CachingFixture.start)
            #expect(decision.selected == expected, "\(codings)")
        }
    }

    @Test func selectingFieldsAreOrderedAndOnlyThoseNamed() {
        let request = CachingFixture.request("C: 3 | B: 2 | A: 1")
        let selecting = Vary.selectingFields(response: CachingFixture.response("Vary: b, D, A"), request: request)
        #expect(selecting.map { $0.map(\.name.canonicalName) } == ["a", "b"])
        #expect(Vary.selectingFields(response: CachingFixture.response("Vary: A | Vary: *"), request: request) == nil)
        #expect(Vary.selectingFields(response: CachingFixture.response(), request: request) == [:])
    }

    @Test(arguments: [
        ("gzip", "gzip"), ("GZIP ,\tbr", "br, gzip"), ("zstd,identity,gzip,deflate,br", "br, deflate, gzip, identity, zstd"),
        ("x-gzip", "gzip"), ("gzip,,", "gzip"), ("", ""), ("gzip, foo", "foo, gzip"), ("gz ip", "gz ip"), ("*", "*"),
        ("identities", "identities"), ("gzip;q=1, br", "br, gzip"), ("gzip;q=2", "gzip;q=2"), ("br;q=0.000, gzip", "gzip"),
        ("gzip;q=0", ""), ("gzip;q=0, *", "*, gzip;q=0"), ("identity;q=0, gzip", "gzip, identity;q=0"), ("*;q=0", "*;q=0"),
        ("br;q=1.0, gzip;q=0.8", "br, gzip"), ("x-gzip;q=0.3", "gzip"),
    ])
    func acceptEncoding(_ value: String, expected: String) {
        var request = CachingFixture.request()
        request.fields.append(HTTPField(name: .acceptEncoding, value: value))
        let selecting = Vary.selectingFields(response: CachingFixture.response("Vary: Accept-Encoding"), request: request)
        #expect(selecting?[.acceptEncoding] == expected)
    }

    /// Stored: English under `Accept-Language: en` and German under `Accept-Language: de`. The variant selected for another preference.
    @Test(
        arguments: [
            ("en, fr;q=0.5", "", "", 0), ("DE", "", "", 1), ("fr;q=0.2, de;q=0.7", "", "", 1), ("de, *;q=0.1", "", "", 1),
            ("de, en", "", "", nil), ("fr, de;q=0.9", "", "", nil), ("de-AT", "", "", nil), ("*", "", "", nil), ("de;q=0", "", "", nil),
            ("de, fr;q=x", "", "", nil), ("", "", "", nil), ("de, fr;q=0.5", ", Accept", "", nil), ("de, fr;q=0.5", "", ", en", nil),
        ] as [(String, String, String, Int?)])
    func theLanguageLikedBest(_ wish: String, vary: String, content: String, expected: Int?) {
        let candidates = ["en", "de"].map { language in
            CachingFixture.stored(
                "Cache-Control: max-age=60 | Vary: Accept-Language\(vary) | Content-Language: \(language)\(content)",
                for: "Accept-Language: \(language), xx;q=0.1")
        }
        let decision = Reuse.decide(
            candidates: candidates, request: CachingFixture.request("Accept-Language: \(wish)"), context: ReuseContext(),
            now: CachingFixture.start)
        switch decision {
        case .fresh(let index, _): #expect(index == expected)
        default: #expect(expected == nil && decision == .none(.varyMiss))
        }
    }

    /// Stored: English, German and Swiss French, the last one the newest. While the upstream is away the language that the client prefers is
    /// served, and any rather than none.
    @Test(
        arguments: [
            ("de, en", 1), ("en, de", 0), ("de;q=0.5, en;q=0.9", 0), ("it, de;q=0.8, en;q=0.7", 1), ("de-AT, en;q=0.3", 1),
            ("fr, en;q=0.9", 2),
            ("fr-CH", 2), ("fr;q=0, *", 1), ("fr;q=0.1, *;q=0.5", 1), ("it", 2), ("", 2), ("de;q=0, fr;q=0, en", 0), ("x;q=y", 2),
        ] as [(String, Int)])
    func theBestLanguageStandsIn(_ wish: String, expected: Int) {
        let candidates = ["en", "de", "fr-CH"].enumerated().map { index, language in
            CachingFixture.stored(
                "Vary: Accept-Language, Accept-Encoding | Content-Language: \(language) | Date: @\(index)",
                for: "Accept-Language: \(language), xx;q=0.1 | Accept-Encoding: gzip")
        }
        #expect(standIn(among: candidates, for: "Accept-Language: \(wish)") == expected)
    }

    /// The language counts before the coding; of two in one language, that which needs no decoding is served. What has no
    /// `Content-Language` is in the language that was asked for.
    @Test func aBetterLanguageIsDecoded() {
        let candidates = ["en", "de", "de"].enumerated().map { index, language in
            CachingFixture.stored(
                "Vary: Accept-Language, Accept-Encoding | Date: @\(index)" + (index == 2 ? " | Content-Encoding: gzip" : ""),
                for: "Accept-Language: \(language), xx;q=0.1 | Accept-Encoding: gzip, br;q=0.\(index)")
        }
        #expect(standIn(among: candidates, for: "Accept-Language: de") == 1)
        #expect(standIn(among: [candidates[0], candidates[2]], for: "Accept-Language: de, en;q=0.5") == 1)
    }

    /// The index of the variant that is served while the upstream is away; nil without one.
    private func standIn(among candidates: [StoredResponse], for request: String) -> Int? {
        let away = ReuseContext(policy: .offlineFirst, isReachable: false)
        let decision = Reuse.decide(
            candidates: candidates, request: CachingFixture.request(request), context: away, now: CachingFixture.start)
        return if case .stale(let index, _, .variant) = decision { index } else { nil }
    }

    @Test func variantKeysTellSetsApart() {
        let keys = ["", "A:", "A: 1", "A: 1 | B: 2", "A: 1, b: 2", "B: 1"].map { Vary.variantKey(CachingFixture.fields($0)) }
        #expect(Set(keys).count == keys.count)
        #expect(Vary.variantKey(CachingFixture.fields("B: 2 | A: 1")) == Vary.variantKey(CachingFixture.fields("A: 1 | b: 2")))
    }
}
