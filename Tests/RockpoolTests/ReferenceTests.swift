// docs/reference/configuration.md lists every key of the configuration with its default, and no other key.
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct ReferenceTests {
    /// The row of each key: type, default and meaning.
    private let rows: [String: [String]]
    private let page: ReferencePage

    init() throws {
        page = try ReferencePage("configuration")
        let pairs = page.tables(of: "key").flatMap(\.rows).map { ($0.first?.codes.first ?? "", Array($0.dropFirst())) }
        rows = Dictionary(pairs) { first, _ in first }
        #expect(rows.count == pairs.count, "no key has two rows")
    }

    @Test func everyKeyHasARowAndEveryRowNamesAKey() {
        let keys = Set(SchemaKey.all(in: Configuration.section.schema).map(\.path))
        #expect(keys.count > 90)
        #expect(keys.subtracting(rows.keys).sorted() == [], "keys without a row")
        #expect(Set(rows.keys).subtracting(keys).sorted() == [], "rows without a key")
    }

    @Test func everyDefaultIsTheOneOfTheCode() {
        let values = SchemaKey.values(of: Configuration.section.show(Self.blank))
        for key in SchemaKey.all(in: Configuration.section.schema) {
            let expected = key.isRequired ? "required" : values[key.path].map { "`\($0)`" }
            #expect(rows[key.path]?[1] == expected, "the documented default of \(key.path)")
        }
    }

    @Test func everyWordOfAnEnumerationIsInItsRow() {
        for key in SchemaKey.all(in: Configuration.section.schema) where !key.words.isEmpty {
            #expect(rows[key.path]?[0].codes == key.words, "the documented words of \(key.path)")
        }
    }

    @Test func theBuiltInCategoriesAreTheCodes() throws {
        let table = try #require(page.tables(of: "category").first)
        let expected = CacheCategory.builtIn.map { category -> [String] in
            let values = SchemaKey.values(of: CacheCategory.section.show(category))
            return ["`\(category.name)`"] + table.columns.dropFirst().map { "`\(values[$0] ?? "")`" }
        }
        #expect(table.rows == expected)
        #expect(table.columns.count == CacheCategory.section.keys.count + 1)
    }

    /// The default configuration plus one category and one upstream that has every optional mapping.
    private static var blank: Configuration {
        var configuration = Configuration()
        configuration.categories = [CacheCategory(name: "NAME")]
        var upstream = Upstream.blank
        upstream.refresh = RefreshRecipe(path: "/")
        upstream.probe = Probe(path: "/")
        upstream.sign = SigningSettings(sigV4: SigV4Rule(keyID: "", secretFile: ""))
        upstream.gateway = "127.0.0.1:1"
        upstream.parent = ParentSettings(url: "")
        upstream.parent?.others = [ParentSettings(url: "")]
        upstream.rateLimit = RateLimitRule()
        upstream.routes = [Route(match: "")]
        upstream.routes[0].success = SuccessRule()
        upstream.routes[0].offlineResponse = .fixed(FixedReply())
        upstream.routes[0].timeouts = RouteTimeouts()
        upstream.routes[0].ttl = LifetimeRule()
        upstream.routes[0].onAbort = .bounds(AbortBounds())
        upstream.onAbort = .bounds(AbortBounds())
        configuration.defaults.onAbort = .bounds(AbortBounds())
        upstream.resources = [Resource(collection: "", delta: .init(query: "", cursor: ""), sync: .init())]
        upstream.resources[0].success = SuccessRule()
        configuration.upstreams = [upstream]
        configuration.fleet.report = SiteReportSettings(url: "", site: "", secretFile: "")
        configuration.via = [ParentRule()]
        configuration.via[0].parent.others = [ParentSettings(url: "")]
        configuration.tracing = TracingSettings(url: "")
        configuration.notify = [NoticeRule()]
        configuration.notify[0].webhook = WebhookSettings(url: "", secretFile: "")
        return configuration
    }
}
