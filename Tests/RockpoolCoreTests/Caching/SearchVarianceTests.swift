// No-Vary-Search: the meaning of the field value, queries that it makes equivalent, and bounded work for hostile values.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct SearchVarianceTests {
    /// A value and its stored form; nil for a malformed value in a response, which means the default.
    @Test(
        arguments: [
            ("params", "except=()"), ("params=?1", "except=()"), ("except=()", "except=()"), ("params=(\"a\")", "params=(\"a\")"),
            ("params, except=(\"x\")", "except=(\"x\")"), ("except=(\"x\")", "except=(\"x\")"),
            ("params, key-order, except=(\"x\")", "key-order, except=(\"x\")"), ("key-order=?1", "key-order"),
            ("key-order, params=(\"b\" \"a\" \"b\")", "key-order, params=(\"a\" \"b\")"),
            ("params=(\"a\";q=1);r, key-order;s", "key-order, params=(\"a\")"), ("unknown-key", ""), ("", ""),
            ("params=?0", ""), ("params=()", ""), ("key-order=?0", ""), ("params=(\"a\"), params=(\"b\")", "params=(\"b\")"),
            ("params=(\"%C3%A9+%e6%B0%97\")", "params=(\"%C3%A9+%E6%B0%97\")"), ("params=(\"a b\" \"\")", "params=(\"\" \"a+b\")"),
            ("key-order=\"not a boolean\"", nil), ("key-order=1", nil), ("params=\"a\"", nil), ("params=(a)", nil),
            ("params=(\"a\" 1)", nil),
            ("params=(\"a\"), except=(\"x\")", nil), ("params=(), except=()", nil), ("params=?0, except=(\"x\")", nil),
            ("params, except=(x)", nil), ("params, except=\"x\"", nil), ("params, except=?1", nil), ("except", nil),
            ("key-order, params=a", nil), ("params=(\"a\"", nil), ("params,", nil), ("Params", nil), ("params=(\"é\")", nil),
        ] as [(String, String?)])
    func values(_ value: String, stored: String?) {
        #expect(SearchVariance(fieldValue: value)?.fieldValue == stored)
        let variance = SearchVariance(CachingFixture.fields("No-Vary-Search: \(value)"))
        #expect(variance.isDefault == (stored ?? "").isEmpty)
        #expect(SearchVariance(fieldValue: variance.fieldValue) == variance)
    }

    @Test func linesOfOneFieldAreOneDictionary() {
        #expect(
            SearchVariance(CachingFixture.fields("No-Vary-Search: params | No-Vary-Search: key-order")).fieldValue == "key-order, except=()"
        )
        #expect(SearchVariance([:]).isDefault)
    }

    struct Pair: Sendable, CustomTestStringConvertible {
        var variance, a, b: String
        var isOne = true
        var testDescription: String { "\(variance): \(a) \(b)" }
    }

    @Test(arguments: [
        // With any value but the default, queries are compared in parsed form.
        Pair(variance: "key-order", a: "/x", b: "/x?"), Pair(variance: "key-order", a: "/x?a=x", b: "/x?%61=%78"),
        Pair(variance: "key-order", a: "/x?a=%f6", b: "/x?a=%ef%bf%bd"), Pair(variance: "key-order", a: "/x?a=x&&&&", b: "/x?a=x"),
        Pair(variance: "key-order", a: "/x?a=", b: "/x?a"), Pair(variance: "key-order", a: "/x?a=%20", b: "/x?a=+"),
        Pair(variance: "key-order", a: "/x?a=%2B", b: "/x?a=+", isOne: false),
        Pair(variance: "key-order", a: "/x?=", b: "/x?", isOne: false),
        Pair(variance: "key-order", a: "/x?a=1=2", b: "/x?a=1%3D2"),
        Pair(variance: "key-order", a: "/x?a=1%262", b: "/x?a=1&2", isOne: false),
        Pair(variance: "key-order", a: "/x?a=%zz%4", b: "/x?a=%25zz%254"),
        Pair(variance: "key-order", a: "/x?a=%EF%BB%BF", b: "/x?a", isOne: false),
        Pair(variance: "key-order", a: "/x?a=%C3%A9", b: "/x?a=e%CC%81", isOne: false),
        Pair(variance: "key-order", a: "/x?a?b=1", b: "/x?a%3Fb=1"), Pair(variance: "key-order", a: "/x?a", b: "/y?a", isOne: false),
        // The order of names is irrelevant; the order of one name's values is not.
        Pair(variance: "key-order", a: "/x?b=1&a=2&b=0", b: "/x?a=2&b=1&b=0"),
        Pair(variance: "key-order", a: "/x?b=1&b=0", b: "/x?b=0&b=1", isOne: false),
        Pair(variance: "params=(\"c\")", a: "/x?b=1&a=2", b: "/x?a=2&b=1", isOne: false),
        // Dropped and kept parameters.
        Pair(variance: "params", a: "/x?a=1", b: "/x"), Pair(variance: "except=()", a: "/x?a=1&b", b: "/x?c"),
        Pair(variance: "params=(\"utm\")", a: "/x?utm=1&a=2", b: "/x?a=2&utm=3&utm"),
        Pair(variance: "params=(\"utm\")", a: "/x?a=2", b: "/x?a=3", isOne: false),
        Pair(variance: "params=(\"utm\")", a: "/x?UTM=2", b: "/x", isOne: false),
        Pair(variance: "params=(\"utm\")", a: "/x?%75tm=2", b: "/x"), Pair(variance: "params=(\"\")", a: "/x?=1&a", b: "/x?a"),
        Pair(variance: "params=(\"%C3%A9+x\")", a: "/x?%c3%a9%20x=1", b: "/x?%C3%A9+x"),
        Pair(variance: "params, except=(\"id\")", a: "/x?id=1&z=2", b: "/x?y&id=1"),
        Pair(variance: "params, except=(\"id\")", a: "/x?id=1", b: "/x?id=2", isOne: false),
        Pair(variance: "params, except=(\"id\" \"v\"), key-order", a: "/x?v=1&id=1&s", b: "/x?id=1&v=1"),
        // The default: byte-wise comparison.
        Pair(variance: "", a: "/x", b: "/x?", isOne: false), Pair(variance: "", a: "/x?a=%20", b: "/x?a=+", isOne: false),
        Pair(variance: "params=()", a: "/x?a=", b: "/x?a", isOne: false), Pair(variance: "", a: "/x?a&&", b: "/x?a&&"),
    ])
    func equivalence(_ pair: Pair) throws {
        let variance = try #require(SearchVariance(fieldValue: pair.variance))
        let (a, b) = (variance.normalized(target: pair.a), variance.normalized(target: pair.b))
        #expect((a == b) == pair.isOne)
        #expect(variance.normalized(target: a) == a)
    }

    @Test func normalForm() throws {
        let variance = try #require(SearchVariance(fieldValue: "key-order, params=(\"t\")"))
        #expect(variance.normalized(target: "/p%61th?b=%7e&t=1&a=x%20y*-._&a") == "/p%61th?a=x+y*-._&a=&b=%7E")
        #expect(variance.normalized(query: "t") == "")
        #expect(variance.normalized(target: "*") == "*")
    }

    @Test func limits() throws {
        let variance = try #require(SearchVariance(fieldValue: "params"))
        let most = String(repeating: "&", count: SearchVariance.maxParameters - 1)
        #expect(variance.normalized(query: most) == "")
        #expect(variance.normalized(query: most + "&") == most + "&")
        let longest = String(repeating: "a", count: SearchVariance.maxQueryBytes)
        #expect(variance.normalized(query: longest) == "")
        #expect(variance.normalized(query: longest + "a") == longest + "a")
        #expect(variance.normalized(target: "/x?\(longest)a") == "/x?\(longest)a")
        let field = "params".padding(to: SearchVariance.maxFieldBytes)
        #expect(SearchVariance(fieldValue: field) != nil)
        #expect(SearchVariance(fieldValue: field + " ") == nil)
    }
}

extension String {
    fileprivate func padding(to count: Int) -> String { self + String(repeating: " ", count: count - utf8.count) }
}
