// `/v1/requests`: the last exchanges, one of them, and the coming ones (docs/reference/admin-api.md#requests).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine

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
