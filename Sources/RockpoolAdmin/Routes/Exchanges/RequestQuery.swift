// The query of `/v1/requests` (docs/reference/admin-api.md#requests).
import RockpoolCore
import RockpoolEngine

/// The filter and the form that a call wants.
struct RequestQuery {
    static let names: Set<String> = [
        "upstream", "method", "status", "verdict", "path", "since", "limit", "cursor", "offset", "count", "follow", "format",
    ]
    /// The verdicts of exchanges, then the states of queued writes that are recorded.
    static let verdicts =
        Trace.Verdict.allCases.map(\.rawValue) + [TunnelRecord.verdict]
        + [OperationState.delivered, .dead, .conflicted, .uncertain, .parked].map(\.rawValue)

    var filter = ExchangeFilter()
    let limit: Int
    /// The number that the records of this page stay below.
    let cursor: UInt64?
    let isArchive: Bool
    /// The number of matching records before the page.
    let offset: Int
    /// True if the answer names the number of all matching records.
    let isCounted: Bool

    /// Throws a 400 that names what is possible.
    init(_ query: AdminQuery, now: Timestamp) throws(Refusal) {
        let isFollowing = try query.flag(named: "follow")
        let format = try query.one(named: "format") ?? "json"
        guard ["json", "har"].contains(format) else { throw .badRequest("format is json or har") }
        isArchive = format == "har"
        let usual: Int64 = isArchive ? Int64(ExchangeRing.capacity) : isFollowing ? 10 : 100
        limit = Int(try query.number(named: "limit", in: (isFollowing ? 0 : 1)...Int64(ExchangeRing.capacity), default: usual))
        offset = Int(try query.number(named: "offset", in: 0...Int64(ExchangeRing.capacity), default: 0))
        isCounted = try query.flag(named: "count")
        if let text = try query.one(named: "cursor") {
            guard let number = UInt64(text) else { throw .badRequest("cursor must be the `next` of a page") }
            cursor = number
        } else {
            cursor = nil
        }
        filter.upstreams = Set(Self.words(query, "upstream"))
        filter.methods = Set(Self.words(query, "method").map { $0.uppercased() })
        for word in Self.words(query, "status") {
            guard let pattern = ExchangeFilter.StatusPattern(word) else {
                throw .badRequest("status is a status such as 404 or a class such as 5xx, not \(word.prefix(40))")
            }
            filter.statuses.append(pattern)
        }
        filter.verdicts = Set(Self.words(query, "verdict"))
        if let unknown = filter.verdicts.first(where: { !Self.verdicts.contains($0) }) {
            throw .badRequest("no verdict \(unknown.prefix(40)); there are \(Self.verdicts.joined(separator: ", "))")
        }
        filter.text = try query.one(named: "path").flatMap { $0.isEmpty ? nil : $0 }
        if let text = try query.one(named: "since") {
            if let moment = RFC3339.parse(text) {
                filter.since = moment
            } else if let span = try? TimeSpan(parsing: text) {
                filter.since = now - span
            } else {
                throw .badRequest("since is a time such as 2026-01-02T03:04:05Z or a duration such as 10m")
            }
        }
    }

    /// The words of a parameter, which may be repeated and may hold several with commas.
    private static func words(_ query: AdminQuery, _ name: String) -> [String] {
        query.all(named: name).flatMap { $0.split(separator: ",") }.map(String.init)
    }
}
