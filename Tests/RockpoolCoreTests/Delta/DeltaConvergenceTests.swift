// With an overlap, pulls converge to the upstream's state, in spite of late commits and lost pages (docs/outbox.md#delta-pull,
// docs/outbox.md#simulation).
import HTTPTypes
import RockpoolCore
import Testing

/// An upstream whose commits become visible late and out of order.
private struct Upstream {
    struct Row {
        var value: Int
        var updatedAt: Int64
        var isGone = false
    }

    var rows: [String: Row] = [:]
    /// Rows that are written but not yet visible.
    var uncommitted: [(visibleAt: Int64, id: String, row: Row)] = []
    var now: Int64 = 1_767_225_600_000

    mutating func step(_ random: inout Chance) {
        now += Int64(random.below(20_000))
        let id = String(random.below(12))
        let row = Row(value: random.below(1000), updatedAt: now - now % 1000, isGone: random.below(4) == 0)
        // The delay is shorter than the overlap; later commits are found only by a full listing.
        uncommitted.append((now + Int64(random.below(50_000)), id, row))
        commit(until: now)
    }

    mutating func commit(until moment: Int64) {
        // The versions of a row become visible in order, as in any database.
        for write in uncommitted where write.visibleAt <= moment && (rows[write.id]?.updatedAt ?? 0) <= write.row.updatedAt {
            rows[write.id] = write.row
        }
        uncommitted.removeAll { $0.visibleAt <= moment }
    }

    func page(_ target: String, size: Int) -> (body: [UInt8], fields: HTTPFields) {
        let query = Dictionary(
            target.drop { $0 != "?" }.dropFirst().split(separator: "&").map { pair in
                let halves = pair.split(separator: "=", maxSplits: 1)
                return (String(halves[0]), String(halves.last ?? ""))
            }, uniquingKeysWith: { first, _ in first })
        let (after, offset) = (query["after"].flatMap { Int64($0) }, query["offset"].flatMap { Int($0) } ?? 0)
        let found = rows.sorted { $0.key < $1.key }.filter { row in after.map { row.value.updatedAt > $0 } ?? !row.value.isGone }
        let items = found.dropFirst(offset).prefix(size).map { id, row -> JSONValue in
            [
                "id": .string(id), "value": .number(JSONNumber(Int64(row.value))), "at": .number(JSONNumber(row.updatedAt)),
                "gone": .bool(row.isGone),
            ]
        }
        var fields: HTTPFields = [:]
        if offset + size < found.count, let link = HTTPField.Name("Link") {
            let rest = query["after"].map { "after=\($0)&" } ?? ""
            fields[link] = "</n?\(rest)offset=\(offset + size)>; rel=\"next\""
        }
        return (JSONValue.array(items).serialized(), fields)
    }

    var values: [String: Int] { rows.filter { !$0.value.isGone }.mapValues(\.value) }
}

/// SplitMix64.
private struct Chance: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func below(_ count: Int) -> Int { Int(next() % UInt64(count)) }
}

@Suite struct DeltaConvergenceTests {
    static let resource = Resource(collection: "/n", delta: .init(query: "after={cursor}", cursor: "/at", deleted: "/gone"))

    /// Runs one pull; returns nil when a page was lost, in which case no change is applied.
    private func pull(
        _ upstream: Upstream, since: DeltaCursor?, isFull: Bool = false, loss: Int, _ random: inout Chance
    ) throws -> DeltaOutcome? {
        let base = RequestHead(method: .get, origin: OriginAddress(scheme: .http, host: "api.test"), target: "/")
        var pull = DeltaPull(try #require(DeltaShape(Self.resource)), base: base, since: since, isFull: isFull)
        var action = pull.start()
        let size = 1 + random.below(5)
        while case .ask(let request) = action {
            if random.below(100) < loss { return nil }
            let (body, fields) = upstream.page(request.target, size: size)
            action = pull.received(body, fields: fields)
        }
        guard case .finished(let outcome) = action else { throw DeltaFault("\(action)") }
        return outcome
    }

    @Test(arguments: 0..<300) func pullsConverge(seed: Int) throws {
        var random = Chance(state: UInt64(seed))
        var upstream = Upstream()
        var (cursor, local): (DeltaCursor?, JSONValue) = (nil, [])
        var applied = 0
        for step in 0..<120 {
            upstream.step(&random)
            guard random.below(3) == 0 || step == 119 else { continue }
            if step == 119 { upstream.commit(until: .max) }
            let loss = step == 119 ? 0 : 15
            guard let outcome = try pull(upstream, since: cursor, loss: loss, &random) else { continue }
            local = try #require(Self.resource.collection(local, fields: [:], applying: outcome.changes, isFull: outcome.isFull))
            // Applying the same changes twice, as after a crash before the cursor was recorded, gives the same result.
            let again = try #require(Self.resource.collection(local, fields: [:], applying: outcome.changes, isFull: outcome.isFull))
            #expect(again == local)
            cursor = outcome.cursor
            applied += 1
        }
        let values = Dictionary(
            (local.array ?? []).compactMap { item in item["id"]?.string.flatMap { id in item["value"]?.integer.map { (id, Int($0)) } } },
            uniquingKeysWith: { first, _ in first })
        #expect(applied > 1 && values == upstream.values, "seed \(seed)")
    }

    @Test func whatVanishedWithoutAWordIsFoundByListingEverything() throws {
        var random = Chance(state: 7)
        var upstream = Upstream()
        upstream.rows = ["1": .init(value: 1, updatedAt: 1_767_225_600_000), "2": .init(value: 2, updatedAt: 1_767_225_600_000)]
        let first = try #require(try pull(upstream, since: nil, loss: 0, &random))
        let local = try #require(Self.resource.collection([], fields: [:], applying: first.changes, isFull: true))
        upstream.rows["1"] = nil
        let delta = try #require(try pull(upstream, since: first.cursor, loss: 0, &random))
        #expect(
            Self.resource.ids(in: try #require(Self.resource.collection(local, fields: [:], applying: delta.changes, isFull: false))) == [
                "1", "2",
            ])
        let full = try #require(try pull(upstream, since: first.cursor, isFull: true, loss: 0, &random))
        #expect(
            Self.resource.ids(in: try #require(Self.resource.collection(local, fields: [:], applying: full.changes, isFull: true))) == ["2"]
        )
    }
}
