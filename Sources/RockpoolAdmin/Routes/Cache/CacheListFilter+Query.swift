// The query of `/v1/cache` (docs/reference/admin-api.md#cache).
import RockpoolCore
import RockpoolStore

extension CacheListFilter {
    static let names: Set<String> = ["prefix", "path", "category", "status", "olderThanSeconds", "pinned", "stale", "sort"]
    /// The most statuses and classes of one call.
    private static let mostStatuses = 20

    /// Throws a 400 that names what is possible.
    init(_ query: AdminQuery, now: Timestamp) throws(Refusal) {
        self.init()
        (prefix, category, text) = (try query.one(named: "prefix") ?? "", try query.one(named: "category"), try query.one(named: "path"))
        for word in query.all(named: "status").flatMap({ $0.split(separator: ",") }) {
            guard let pattern = ExchangeFilter.StatusPattern(word), statuses.count < Self.mostStatuses else {
                throw .badRequest("status is one such as 404, a class such as 5xx, or up to \(Self.mostStatuses) of these with commas")
            }
            statuses.append(pattern.range)
        }
        if try query.one(named: "olderThanSeconds") != nil {
            storedBefore = now - .seconds(try query.number(named: "olderThanSeconds", in: 0...Int64(Int32.max), default: 0))
        }
        if try query.one(named: "pinned") != nil { isPinned = try query.flag(named: "pinned") }
        if try query.one(named: "stale") != nil { isStale = try query.flag(named: "stale") }
        guard let order = Order(rawValue: try query.one(named: "sort") ?? Order.url.rawValue) else {
            throw .badRequest("sort is \(Order.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        self.order = order
    }
}
