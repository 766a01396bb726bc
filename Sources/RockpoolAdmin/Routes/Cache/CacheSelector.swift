// The entries a purge selects: at least one selector is required, so that nothing is removed by mistake; several must all apply
// (docs/reference/admin-api.md#purge).
import RockpoolCore
import RockpoolEngine
import RockpoolStore

enum CacheSelector {
    /// All selectors; `url` and `group` may be repeated.
    static let names = ["url", "prefix", "glob", "group", "category", "upstream", "olderThanSeconds"]

    /// Throws a 400 unless a valid selector is given, and a 404 for an unknown upstream or category.
    static func filter(
        from query: AdminQuery, active: ActiveConfiguration, inUse: Set<String>, now: Timestamp
    ) throws(Refusal)
        -> CacheFilter
    {
        guard Self.names.contains(where: { !query.all(named: $0).isEmpty }) else {
            throw .badRequest("name at least one of \(Self.names.joined(separator: ", ")); none is given")
        }
        var selection = CacheSelection()
        for url in query.all(named: "url") { selection.urls.append(try active.request(url: url).url) }
        selection.groups = query.all(named: "group")
        if selection.groups.contains("") { throw .badRequest("group is empty") }
        selection.prefix = try pattern("prefix", from: query)
        selection.glob = try pattern("glob", from: query)
        if !query.all(named: "category").isEmpty {
            selection.category = try category(try query.required(named: "category"), active: active, inUse: inUse)
        }
        if !query.all(named: "upstream").isEmpty { selection.origin = try origin(try query.required(named: "upstream"), active: active) }
        if !query.all(named: "olderThanSeconds").isEmpty {
            let age = try query.number(named: "olderThanSeconds", in: 0...Int64(Int32.max), default: 0)
            selection.storedBefore = now - .seconds(age)
        }
        return .matching(selection)
    }

    /// A beginning or a pattern of URLs, which names at least the scheme.
    private static func pattern(_ name: String, from query: AdminQuery) throws(Refusal) -> String? {
        guard !query.all(named: name).isEmpty else { return nil }
        let value = try query.required(named: name)
        guard value.hasPrefix("http://") || value.hasPrefix("https://") else {
            throw .badRequest("\(name) begins as a URL, such as https://api.example.com/v1/")
        }
        return value
    }

    /// Returns the name of a category that is configured or in use. Throws a 404 with these names otherwise.
    static func category(_ value: String, active: ActiveConfiguration, inUse: Set<String>) throws(Refusal) -> String {
        let known = Set(active.configuration.categories.map(\.name)).union(inUse)
        guard known.contains(value) else {
            if let unread = active.unread { throw .unknown("no category \(value.prefix(40)) is known: \(unread)") }
            throw .unknown("no category \(value.prefix(40)); there are \(known.sorted().joined(separator: ", "))")
        }
        return value
    }

    /// The origin of a declared upstream given by name, or any origin given by URL.
    private static func origin(_ value: String, active: ActiveConfiguration) throws(Refusal) -> OriginAddress {
        if let upstream = active.routes.upstream(named: value) { return upstream.origin }
        if value.contains("://") {
            let request = try RequestHead(url: value)
            guard request.target == "/" else { throw .badRequest("upstream is a name or an origin; use prefix for a part of one") }
            return request.origin
        }
        throw .unknown(upstream: value, among: active)
    }
}

extension Refusal {
    /// A 404 response.
    static func unknown(_ detail: String) -> Refusal { Refusal(status: 404, problem: "not-found", detail: detail) }

    /// A 404 response for the name of an upstream that is not declared, with those that are.
    static func unknown(upstream name: String, among active: ActiveConfiguration) -> Refusal {
        if let unread = active.unread { return .unknown("no upstream \(name.prefix(40)) is known: \(unread)") }
        let names = active.routes.upstreams.map(\.name).joined(separator: ", ")
        return .unknown("no upstream \(name.prefix(40)); declared are \(names.isEmpty ? "none" : names)")
    }
}
