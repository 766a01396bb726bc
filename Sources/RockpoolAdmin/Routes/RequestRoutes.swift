// `/v1/requests`: the last exchanges, one of them, and the coming ones (docs/reference/admin-api.md#requests).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import ServiceLifecycle
import Synchronization

struct RequestRoutes {
    let exchanges: ExchangeRing
    let active: ActiveConfiguration
    let statistics: Statistics
    let followers: FollowerCount
    let now: @Sendable () -> Timestamp

    func add(to router: Router<AdminContext>) {
        let routes = router.group("/v1/requests")
        routes.get { request, context in try answer(request, context) }
        routes.get(":id") { _, context in try one(id: context.parameters.get("id") ?? "") }
    }

    private func answer(_ request: Request, _ context: AdminContext) throws -> Response {
        let query = try AdminQuery(request, known: RequestQuery.names)
        let wish = try RequestQuery(query, now: now())
        if try query.flag(named: "follow") { return try follow(wish, context) }
        let (items, next) = page(of: wish)
        if items.isEmpty, let name = wish.filter.upstreams.sorted().first(where: { active.routes.upstream(named: $0) == nil }) {
            throw Refusal.unknown(upstream: name, among: active)
        }
        if wish.isArchive { return archive(items) }
        var document: JSONValue = [
            "items": .array(items.map(\.json)), "next": .optional(next.map { String($0) }), "recorded": .integer(exchanges.count),
            "total": .integer(statistics.total), "last": .string(String(exchanges.last)),
        ]
        if wish.isCounted {
            document["matching"] = .integer(exchanges.page(wish.filter, below: nil, limit: ExchangeRing.capacity).items.count)
        }
        return .json(document)
    }

    /// The records of a page: after a cursor, or after a number of records that match.
    private func page(of wish: RequestQuery) -> (items: [ExchangeRecord], next: UInt64?) {
        let page = exchanges.page(wish.filter, below: wish.cursor, limit: wish.offset + wish.limit)
        return (Array(page.items.dropFirst(wish.offset)), page.next)
    }

    private func one(id: String) throws -> Response {
        guard let record = exchanges.record(id: id) else {
            throw Refusal.unknown("no request \(id.prefix(40)); the last \(ExchangeRing.capacity) are recorded")
        }
        return .json(record.detailedJSON)
    }

    /// The oldest first, as archives are read.
    private func archive(_ items: [ExchangeRecord]) -> Response {
        let entries = items.reversed().map { String(decoding: $0.har.serialized(), as: UTF8.self) }.joined(separator: ",")
        return Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(string: HAREntry.opening(version: "1") + entries + HAREntry.closing)))
    }

    /// Sends the newest records, the oldest of them first, and then each new one as a line of JSON; an empty line while there are none.
    private func follow(_ wish: RequestQuery, _ context: AdminContext) throws -> Response {
        guard followers.join() else {
            return .problem(.noRoom, detail: "\(followers.limit) clients follow the requests already")
        }
        let (exchanges, followers) = (exchanges, followers)
        return Response(
            status: .ok, headers: [.contentType: "application/x-ndjson", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                defer { followers.leave() }
                var last = exchanges.last
                let first = wish.limit == 0 ? [] : exchanges.page(wish.filter, below: last + 1, limit: wish.limit).items.reversed()
                try await writer.write(Self.lines(Array(first), orSign: true))
                var spoken = ContinuousClock.now
                while !Task.isCancelled, !followers.isClosed {
                    try await Task.sleep(for: FollowerCount.pace)
                    let news: [ExchangeRecord]
                    (news, last) = exchanges.news(wish.filter, after: last)
                    let isSilent = ContinuousClock.now - spoken >= FollowerCount.silence
                    guard !news.isEmpty || isSilent else { continue }
                    try await writer.write(Self.lines(news, orSign: isSilent))
                    spoken = .now
                }
                try await writer.finish(nil)
            })
    }

    private static func lines(_ records: [ExchangeRecord], orSign: Bool) -> ByteBuffer {
        let text = records.map { String(decoding: $0.json.serialized(), as: UTF8.self) + "\n" }.joined()
        return ByteBuffer(string: text.isEmpty && orSign ? "\n" : text)
    }
}

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

/// Bounds the number of followers.
final class FollowerCount: Sendable {
    /// How often a follower gets news.
    static let pace = Duration.milliseconds(100)
    /// After this time without a record an empty line is sent, so that a client that has left is noticed.
    static let silence = Duration.seconds(10)

    let limit: Int
    private let count = Mutex(0)
    private let closed = Atomic<Bool>(false)

    init(limit: Int) { self.limit = limit }

    /// Adds a follower; false if there are too many.
    func join() -> Bool {
        count.withLock { count in
            guard count < limit else { return false }
            count += 1
            return true
        }
    }

    /// True once the server stops.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// Waits until the server stops, then lets the followers end.
    func run() async {
        try? await gracefulShutdown()
        closed.store(true, ordering: .releasing)
    }

    func leave() { count.withLock { $0 -= 1 } }
}
