// Issue 5: random histories of two devices; afterwards both devices and the server agree, and every lost value is recorded
// (docs/outbox.md#properties, P9).
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct HistoryTests {
    /// `ROCKPOOL_SEED` repeats a run, `ROCKPOOL_HISTORIES` makes it longer.
    private static let environment = ProcessInfo.processInfo.environment
    private static let seed = environment["ROCKPOOL_SEED"].flatMap { UInt64($0) } ?? .random(in: 0...UInt64(UInt32.max))
    private static let count = environment["ROCKPOOL_HISTORIES"].flatMap { Int($0) } ?? 200
    private static let base: JSONValue = ["title": "base", "status": "open", "tags": ["a", "b"], "count": 100]

    @Test(arguments: Resource.Conflict.allCases) func bothAgreeAndNothingIsLost(_ strategy: Resource.Conflict) async throws {
        let start = ContinuousClock.now
        let seed = "ROCKPOOL_SEED=\(Self.seed)"
        let notes = (1...Self.count).map { String($0) }
        let api = try await NotesServer.start(seed: notes.map { _ in Self.base })
        let resource: JSONValue = [
            "conflict": .string(strategy.rawValue), "fields": ["/tags": "set", "/count": "counter", "/status": "client"],
        ]
        let a = Editor(name: "a", device: try await Device.start(api: api.port, resource: resource), seed: Self.seed)
        let b = Editor(name: "b", device: try await Device.start(api: api.port, resource: resource), seed: Self.seed)
        _ = try await (a.read(notes), b.read(notes))
        for editor in [a, b] { try await editor.device.network("offline") }
        async let first = a.edit(notes)
        async let second = b.edit(notes)
        let (hers, his) = try await (first, second)

        try await a.device.network("auto")
        try await a.device.settle(within: .seconds(300))
        try await #expect(a.device.items("/v1/conflicts?state=all").isEmpty, "\(seed): the first device to reconnect meets no conflict")
        try await b.device.network("auto")
        let asked = try await decideAll(on: b.device)

        for editor in [a, b] {
            let states = try await Set(editor.device.items("/v1/operations?state=all").compactMap { $0["state"]?.string })
            #expect(states.isSubset(of: ["delivered", "superseded"]), "\(seed): \(editor.name) has \(states)")
        }
        let all = Array(Set(notes + api.notes.map(\.id)))
        let (left, right) = try await (a.read(all), b.read(all))
        let standing = Dictionary(uniqueKeysWithValues: api.notes.map { ($0.id, $0.representation) })
        let differing = all.filter { left[$0] != .some(standing[$0]) || right[$0] != .some(standing[$0]) }
        #expect(differing.isEmpty, "\(seed): \(differing.count) notes differ, \(differing.prefix(3))")

        let records = try await b.device.records()
        let found = records.reduce(into: texts(of: api.notes.map(\.representation))) { found, record in
            found.formUnion(texts(of: ["base", "mine", "theirs", "merged"].compactMap { record[$0] }))
        }
        let lost = (hers + his).filter { !$0.texts.isSubset(of: found) }
        #expect(lost.isEmpty, "\(seed): \(lost.count) histories have lost a value, \(lost.prefix(3))")
        expectDeletionsKnown(hers, his, records, standing, seed)
        let counters = strategy == .fieldMerge ? expectCounted(hers, his, records, standing, seed) : 0
        for editor in [a, b] {
            await editor.device.close()
            try await #expect(editor.device.server.stop() == .exit(0))
        }
        await api.stop()
        print(
            "histories: \(strategy.rawValue), \(seed), \(Self.count) notes, \(records.count) conflicts, \(asked) asked,",
            "\(counters) counters, \(api.effects()) effects, \(ContinuousClock.now - start)")
    }

    /// Decides all open conflicts at random, repeatedly until none is left. Returns the number of decisions.
    private func decideAll(on device: Device) async throws -> Int {
        var decided = 0
        for round in UInt64(0)..<20 {
            try await device.settle(within: .seconds(300))
            let open = try await device.items("/v1/conflicts?state=open")
            if open.isEmpty { return decided }
            for conflict in open {
                let path = "/v1/conflicts/" + (conflict["id"]?.string ?? "")
                let number = conflict["entity"]?.string?.split(separator: "/").last.flatMap { UInt64($0) } ?? 0
                var chance = Chance(Self.seed, number, round)
                let choice = try await choice(path, device, &chance)
                var answer = try await device.admin.send("POST", path + "/resolve", choice)
                // Some decisions are impossible: for a deletion, `both` has no second version to keep.
                if answer.status == 409 { answer = try await device.admin.send("POST", path + "/resolve", ["resolution": "theirs"]) }
                #expect(answer.status == 200, "\(choice): \(answer.text)")
                decided += 1
            }
        }
        throw NeverCame(description: "an end of questions")
    }

    private func choice(_ path: String, _ device: Device, _ chance: inout Chance) async throws -> JSONValue {
        switch Int.random(in: 0..<4, using: &chance) {
        case 0: return ["resolution": "mine"]
        case 1: return ["resolution": "theirs"]
        case 2: return ["resolution": "both"]
        default:
            let record = try await device.admin.send("GET", path).json
            guard var merged = record?["theirs"], let mine = record?["mine"], mine.object != nil, merged.object != nil else {
                return ["resolution": "mine"]
            }
            for name in ["title", "status", "tags", "count"] where Bool.random(using: &chance) { merged[name] = mine[name] }
            return ["resolution": "merged", "merged": merged]
        }
    }

    /// Returns the texts that clients have written in these representations.
    private func texts(of notes: [JSONValue]) -> Set<String> {
        notes.reduce(into: []) { texts, note in
            texts.formUnion(["title", "status"].compactMap { note[$0]?.string })
            texts.formUnion((note["tags"]?.array ?? []).compactMap(\.string))
        }
    }

    /// A note that still exists although a device has deleted it must have a conflict record.
    private func expectDeletionsKnown(
        _ hers: [History], _ his: [History], _ records: [JSONValue], _ standing: [String: JSONValue], _ seed: String
    ) {
        let operations = Set(records.compactMap { $0["operation"]?.string })
        let entities = Set(records.compactMap { $0["entity"]?.string })
        let hisLost = his.filter { standing[$0.note] != nil && $0.deletion.map { !operations.contains($0) } ?? false }
        let hersLost = hers.filter { standing[$0.note] != nil && $0.deletion != nil && !entities.contains("/v1/notes/" + $0.note) }
        let unknown = (hisLost + hersLost).map(\.note)
        #expect(unknown.isEmpty, "\(seed): deletions without a record: \(unknown)")
    }

    /// Without a user's decision, each step of both devices counts exactly once. Returns the number of notes with steps of both.
    private func expectCounted(
        _ hers: [History], _ his: [History], _ records: [JSONValue], _ standing: [String: JSONValue], _ seed: String
    ) -> Int {
        let decided = Set(records.filter { $0["decidedBy"] == "person" }.compactMap { $0["entity"]?.string })
        let steps = Dictionary(grouping: hers + his, by: \.note)
        var counters = 0
        for (note, sides) in steps where !decided.contains("/v1/notes/" + note) && sides.allSatisfy({ $0.deletion == nil }) {
            let sum = sides.reduce(100) { $0 + $1.counted }
            #expect(standing[note]?["count"]?.integer == sum, "\(seed): note \(note)")
            if sides.allSatisfy({ $0.counted > 0 }) { counters += 1 }
        }
        #expect(counters > 0 || Self.count < 100, "\(seed): no note was counted by both devices, so the run tests nothing")
        return counters
    }
}
