// Folding writes over a snapshot gives the state of an upstream that has applied them (docs/outbox.md#reads, docs/outbox.md#properties P8).
import HTTPTypes
import RockpoolCore
import Testing

private func text(_ value: JSONValue) -> String { String(decoding: value.serialized(), as: UTF8.self) }

/// A snapshot, the writes accepted since, and the upstream after it has applied all of them.
private struct History {
    let before: ModelServer
    var after: ModelServer
    var writes: [FoldedWrite] = []
    private var random: SeededGenerator

    init(seed: Int, deliveredOnly: Bool = false) throws {
        random = SeededGenerator(seed: seed)
        var items: [(id: String, object: JSONValue)] = []
        for id in ["1", "2", "3"] where random.chance(75) {
            var object = random.object()
            (object["id"], object["s"], object["updatedAt"]) = (.string(id), .string(random.one(of: ["open", "done"])), 5)
            items.append((id, object))
        }
        before = ModelServer(items)
        after = before
        let delivered = deliveredOnly ? Int64.max : Int64.random(in: 0..<8, using: &random)
        for sequence in 1...Int64(random.one(of: [1, 3, 9])) {
            guard var write = change(sequence) else { continue }
            try after.apply(write)
            if sequence <= delivered {
                write.isDelivered = true
                write.answer = random.chance(50) ? write.id.flatMap { after[$0] } : nil
            }
            writes.append(write)
        }
    }

    private mutating func change(_ sequence: Int64) -> FoldedWrite? {
        let id = random.one(of: ["1", "2", "3", "loc_1", "loc_2"])
        let exists = after[id] != nil
        var object = random.object()
        if random.chance(80) { object["s"] = .string(random.one(of: ["open", "done"])) }
        if random.chance(15), exists { return .delete(sequence, id) }
        if random.chance(40), exists {
            return .patch(sequence, id, text(object), random.one(of: ["application/json", "application/merge-patch+json"]))
        }
        if random.chance(40), exists { return .patch(sequence, id, text(operations()), "application/json-patch+json") }
        return exists ? .put(sequence, id, text(object)) : wasUsed(id) ? nil : .create(sequence, id, text(object))
    }

    private func wasUsed(_ id: String) -> Bool { before[id] != nil || writes.contains { $0.id == id } }

    private mutating func operations() -> JSONValue {
        let path = JSONValue.string("/" + random.one(of: ["a", "b", "a/b", "b/0", "s"]))
        return .array(
            (0..<2).map { _ in
                [
                    "op": .string(random.one(of: ["add", "replace", "remove", "copy"])), "path": path, "value": random.json(depth: 1),
                    "from": .string("/" + random.one(of: ["a", "c"])),
                ]
            })
    }

    var ids: [String] { ["1", "2", "3", "loc_1", "loc_2"] }
    func writes(of id: String) -> [FoldedWrite] { writes.filter { $0.id == id } }
}

private func byID(_ list: JSONValue) -> [String: JSONValue] {
    Dictionary(list["items"]?.array?.map { ($0["id"]?.string ?? "", $0) } ?? []) { first, _ in first }
}

@Suite struct FoldingPropertyTests {
    @Test(arguments: 0..<20) func itemsAreWhatTheUpstreamWouldHold(_ seed: Int) throws {
        var exact = 0
        for round in 0..<50 {
            let history = try History(seed: seed * 1000 + round)
            for id in history.ids {
                let context: Comment = "seed \(seed), round \(round), item \(id)"
                switch ItemFold.fold(history.before[id], with: history.writes(of: id), resource: .notes) {
                case .unchanged: #expect(history.after[id] == history.before[id], context)
                case .present(let body, _, _):
                    exact += 1
                    #expect(body == history.after[id], context)
                case .deleted: #expect(history.after[id] == nil, context)
                // A patch that does not apply leaves the item unchanged, both in the model and in the fold.
                case .dirty(let body, _, _): #expect(body == history.after[id], context)
                }
            }
        }
        #expect(exact > 50)
    }

    @Test(arguments: 0..<20) func collectionsAreWhatTheUpstreamWouldList(_ seed: Int) throws {
        var exact = 0
        for round in 0..<50 {
            let history = try History(seed: seed * 1000 + round)
            for query in [nil, "s=open"] {
                let belongs = { (item: JSONValue) in query == nil || item["s"] == "open" }
                let base = history.before.list(where: belongs)
                let outcome = CollectionFold.fold(base, query: query, with: history.writes, resource: .notes)
                let items = byID(outcome.value)
                #expect(items.count == outcome.value["items"]?.array?.count, "an id must not occur twice")
                #expect(outcome.value["total"]?.integer == Int64(items.count))
                guard !outcome.isDirty else { continue }
                exact += 1
                // Members that the upstream keeps after a PUT are unknown for an item that is missing in the base.
                let expected = byID(history.after.list(where: belongs)).map { id, item in
                    var item = item
                    if byID(base)[id] == nil, items[id]?["updatedAt"] == nil { item["updatedAt"] = nil }
                    return (id, item)
                }
                #expect(items == Dictionary(uniqueKeysWithValues: expected), "seed \(seed), round \(round), query \(query ?? "")")
            }
        }
        #expect(exact > 20)
    }

    /// The item and its entry in the collection are equal.
    @Test(arguments: 0..<20) func collectionsAndItemsAgree(_ seed: Int) throws {
        for round in 0..<50 {
            let history = try History(seed: seed * 1000 + round)
            let listed = byID(CollectionFold.fold(history.before.list(), query: nil, with: history.writes, resource: .notes).value)
            for id in history.ids {
                switch ItemFold.fold(history.before[id], with: history.writes(of: id), resource: .notes) {
                case .unchanged: #expect(listed[id] == history.before[id])
                case .present(let body, _, _): #expect(listed[id] == body)
                case .deleted: #expect(listed[id] == nil)
                case .dirty(let body, _, _): #expect(listed[id] == body)
                }
            }
        }
    }

    /// If the base was fetched after all deliveries, folding them again changes nothing, provided the upstream's responses are known.
    @Test(arguments: 0..<20) func nothingPendingNothingChanges(_ seed: Int) throws {
        var folded = 0
        for round in 0..<50 {
            let history = try History(seed: seed * 1000 + round, deliveredOnly: true)
            #expect(
                CollectionFold.fold(history.after.list(), query: nil, with: [], resource: .notes)
                    == CollectionOutcome(value: history.after.list())
            )
            let last = history.ids.compactMap { history.writes(of: $0).last }.filter { $0.answer != nil || $0.method == .delete }
            let again = CollectionFold.fold(history.after.list(), query: nil, with: last, resource: .notes)
            #expect(again.value == history.after.list() && !again.isDirty, "seed \(seed), round \(round)")
            folded += again.count
        }
        #expect(folded > 0)
    }
}
