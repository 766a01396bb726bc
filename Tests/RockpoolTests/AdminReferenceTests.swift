// docs/reference/admin-api.md, metrics.md and headers.md list the routes, problem types, metrics and header fields of the code.
import Foundation
import RockpoolCore
import RockpoolEngine
import Testing

@Suite struct AdminReferenceTests {
    /// `openapi.yaml` lists the server's routes; a test of RockpoolAdminTests compares it with the router.
    @Test func everyRouteIsOnThePageAndInTheDescription() throws {
        var (path, described) = ("", Set<String>())
        let description = try Repository.text(of: "Sources/AdminPages/openapi.yaml").split(separator: "\n")
        for line in description.prefix(while: { $0 != "components:" }) {
            if line.hasPrefix("  /"), line.hasSuffix(":") { path = String(line.dropFirst(2).dropLast()) }
            let word = String(line.dropFirst(4).dropLast())
            let isMethod = ["get", "put", "post", "delete", "patch"].contains(word)
            if line.hasPrefix("    "), line.hasSuffix(":"), isMethod { described.insert("\(word.uppercased()) \(path)") }
        }
        let listed = try ReferencePage("admin-api").tables(of: "route").flatMap(\.rows).compactMap { $0.first?.codes.first }
        #expect(described.count > 35 && listed.count == Set(listed).count)
        #expect(described.symmetricDifference(listed).sorted() == [])
    }

    /// The types of `ProblemType`, and the refusals that other modules write.
    @Test func everyProblemTypeIsInTheTableWithItsStatuses() throws {
        var known: [String: Set<String>] = [:]
        for type in ProblemType.allCases { known[type.rawValue, default: []].insert("\(type.status)") }
        let sources = try Repository.sources(of: ["RockpoolCore", "RockpoolNetwork", "RockpoolAdmin"])
        let pieces = sources.components(separatedBy: ", problem: \"")
        for (before, behind) in zip(pieces, pieces.dropFirst()) where Int(before.suffix(3)) != nil {
            known[String(behind.prefix { $0 != "\"" }), default: []].insert(String(before.suffix(3)))
        }
        let table = try #require(try ReferencePage("admin-api").tables(of: "type").last)
        let listed = table.rows.map { ($0.first?.codes.first ?? "", Set($0[1].split(separator: ", ").map(String.init))) }
        #expect(Dictionary(listed) { first, _ in first } == known)
    }

    @Test func everyMetricIsInTheTables() throws {
        let calls = try Repository.sources(of: ["RockpoolAdmin"]).components(separatedBy: "metrics.add(").dropFirst()
        let known = calls.compactMap { call -> [String]? in
            guard let name = call.firstMatch(of: /"((?:rockpool|process)_[a-z_]+)"/)?.1 else { return nil }
            let kind = call.contains(".counter,") ? "counter" : call.contains(".gauge,") ? "gauge" : "histogram"
            let label = call.firstMatch(of: /by: "([a-z]+)"/).map { "`\($0.1)`" }
            let labels = call.contains("samples:") ? call.matches(of: #/"([a-z]+)": /#).map { "`\($0.1)`" }.joined(separator: ", ") : nil
            return ["`\(name)`", kind, label ?? labels ?? "none"]
        }
        let listed = try ReferencePage("metrics").tables(of: "metric").flatMap(\.rows).map { Array($0.prefix(3)) }
        #expect(known.count > 20)
        #expect(Set(known).symmetricDifference(listed).map(\.description).sorted() == [])
    }

    /// Every metric that the alerts and the dashboard name is in the tables, or a record of the rules.
    @Test(arguments: ["prometheus-rules.yml", "grafana-dashboard.json"]) func theFilesForPrometheusNameMetricsOfTheTables(
        file: String
    ) throws {
        let text = try Repository.text(of: "Config/\(file)"), rules = try Repository.text(of: "Config/prometheus-rules.yml")
        let listed = Set(try ReferencePage("metrics").tables(of: "metric").flatMap(\.rows).compactMap { $0.first?.codes.first })
        let records = Set(rules.matches(of: /record: (\S+)/).map { String($0.1) })
        let named = Set(text.matches(of: /\b(?:rockpool|process)[_:][a-z0-9_:]+/).map { String($0.0) })
        let unknown = named.filter { name in
            !records.contains(name) && !listed.contains(name)
                && !["_bucket", "_sum", "_count"].contains { suffix in
                    name.hasSuffix(suffix) && listed.contains(String(name.dropLast(suffix.count)))
                }
        }
        #expect(named.count > 10 && unknown.sorted() == [])
        if file.hasSuffix("json") { #expect(try JSONValue.parse(Array(text.utf8))["panels"]?.array?.isEmpty == false) }
    }

    private static let modules = ["RockpoolCore", "RockpoolEngine", "RockpoolNetwork", "RockpoolAdmin"]

    @Test func everyFieldThatTheCodeNamesHasARow() throws {
        let sources = try Repository.sources(of: Self.modules)
        var named = Set(SecretFields.identifying.map { "\($0)".lowercased() })
        for opening in ["= listed(\"", "registered(\"", "HTTPField.Name(\"", "value(of: \"", "= name(\""] {
            named.formUnion(sources.components(separatedBy: opening).dropFirst().map { $0.prefix { $0 != "\"" }.lowercased() })
        }
        let missing = named.subtracting(try Self.fields().map { $0.lowercased() }).sorted()
        #expect(named.count > 35 && missing == [])
    }

    @Test func everyRowNamesAFieldOfTheCode() throws {
        let bytes = Array(try Repository.sources(of: Self.modules).lowercased().utf8)
        let isOfName = { (byte: UInt8) in (97...122).contains(byte) || (48...57).contains(byte) || byte == UInt8(ascii: "-") }
        let words = Set(bytes.split { !isOfName($0) }.map { String(decoding: $0, as: UTF8.self) })
        let unknown = try Self.fields().filter { field in
            let name = field.lowercased()
            return !words.contains(name) && !words.contains(name.replacing("-", with: ""))
        }
        #expect(unknown == [])
    }

    /// The names in the first column of every table of fields.
    private static func fields() throws -> [String] {
        try ReferencePage("headers").tables(of: "field").flatMap(\.rows).flatMap { $0.first?.codes ?? [] }
    }
}
