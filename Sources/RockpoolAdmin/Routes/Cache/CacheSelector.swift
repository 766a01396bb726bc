// The entries a purge selects: exactly one selector is required, so that nothing is removed by mistake (docs/reference/admin-api.md#purge);
// a group may name its
// upstream.
import RockpoolCore
import RockpoolEngine
import RockpoolStore

enum CacheSelector {
    /// All selectors; `url` may be repeated.
    static let names = ["url", "prefix", "group", "category", "upstream"]

    /// Throws a 400 unless exactly one valid selector is given, and a 404 for an unknown upstream or category.
    static func filter(from query: AdminQuery, active: ActiveConfiguration, inUse: Set<String>) throws(Refusal) -> CacheFilter {
        let given = Self.names.filter { !query.all(named: $0).isEmpty }
        if given == ["group", "upstream"] {
            return .group(
                try query.required(named: "group"),
                origin: try Self.origin(try query.required(named: "upstream"), active: active))
        }
        guard let name = given.first, given.count == 1 else {
            let told = given.isEmpty ? "none is given" : "given are \(given.joined(separator: " and "))"
            throw .badRequest("name exactly one of \(Self.names.joined(separator: ", ")); \(told)")
        }
        if name == "url" {
            var urls: [String] = []
            for url in query.all(named: name) { urls.append(try RequestHead(url: url).url) }
            return .urls(urls)
        }
        let value = try query.required(named: name)
        switch name {
        case "prefix":
            guard value.hasPrefix("http://") || value.hasPrefix("https://") else {
                throw .badRequest("prefix is the beginning of a URL, such as https://api.example.com/v1/")
            }
            return .prefix(value)
        case "group": return .group(value, origin: nil)
        case "category":
            let known = Set(active.configuration.categories.map(\.name)).union(inUse)
            guard known.contains(value) else {
                throw .unknown("no category \(value.prefix(40)); there are \(known.sorted().joined(separator: ", "))")
            }
            return .category(value)
        default: return .upstream(try Self.origin(value, active: active))
        }
    }

    /// The origin of a declared upstream given by name, or any origin given by URL.
    private static func origin(_ value: String, active: ActiveConfiguration) throws(Refusal) -> OriginAddress {
        if let upstream = active.routes.upstream(named: value) { return upstream.origin }
        if value.contains("://") {
            let request = try RequestHead(url: value)
            guard request.target == "/" else { throw .badRequest("upstream is a name or an origin; use prefix for a part of one") }
            return request.origin
        }
        let names = active.routes.upstreams.map(\.name).joined(separator: ", ")
        throw .unknown("no upstream \(value.prefix(40)); declared are \(names.isEmpty ? "none" : names)")
    }
}

extension Refusal {
    /// A 404 response.
    static func unknown(_ detail: String) -> Refusal { Refusal(status: 404, problem: "not-found", detail: detail) }
}
