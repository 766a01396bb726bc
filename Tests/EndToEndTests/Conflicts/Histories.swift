// Two devices that each edit the same notes at random while they are offline, and every value that either of them has written.
import RockpoolCore
import RockpoolTesting

/// The same seed gives the same histories (SplitMix64).
struct Chance: RandomNumberGenerator {
    private var state: UInt64

    init(_ parts: UInt64...) { state = parts.reduce(0) { ($0 ^ $1) &* 0x9E37_79B9_7F4A_7C15 &+ 0x1F83_D9AB } }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// The changes of one device to one note.
struct History: Sendable {
    let note: String
    /// The last value written to each field. Every text is written only once in all histories.
    var values: [String: String] = [:]
    /// The tags that it added and did not remove.
    var tags: Set<String> = []
    /// The sum that it added to the count.
    var counted: Int64 = 0
    /// The operation that deleted the note, which is the last one.
    var deletion: String?

    /// The texts that must be found in the final notes or in a conflict record.
    var texts: Set<String> { tags.union(values.values) }
}

/// A device with several clients at once, each with its own notes.
struct Editor {
    let name: String
    let device: Device
    let seed: UInt64
    private static let breadth = 4

    /// Calls `body` for every note, some calls in parallel.
    func each<Result: Sendable>(
        _ notes: [String], _ body: @escaping @Sendable (Wire, String) async throws -> Result
    ) async throws -> [Result] {
        let gateway = device.server.gateway
        return try await withThrowingTaskGroup(of: [Result].self) { group in
            for share in 0..<Self.breadth {
                group.addTask {
                    let wire = try await Wire.open(gateway)
                    var results: [Result] = []
                    for place in stride(from: share, to: notes.count, by: Self.breadth) {
                        results.append(try await body(wire, notes[place]))
                    }
                    await wire.close()
                    return results
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// Reads each note; the value is nil when the note does not exist.
    func read(_ notes: [String]) async throws -> [String: JSONValue?] {
        let pairs = try await each(notes) { wire, note in
            let answer = try await wire.send("GET", "/v1/notes/\(note)")
            guard answer.status == 200 || answer.status == 404, answer.head["rockpool-state"] == nil else {
                throw NeverCame(description: "\(note): \(answer.head) \(answer.text)")
            }
            return (note, answer.status == 200 ? answer.json : nil)
        }
        return Dictionary(uniqueKeysWithValues: pairs)
    }

    /// Makes up to three changes of every note, each based on the state read just before.
    func edit(_ notes: [String]) async throws -> [History] {
        let (name, seed, device) = (name, seed, device)
        return try await each(notes) { wire, note in
            var chance = Chance(seed, name.unicodeScalars.reduce(0) { $0 + UInt64($1.value) }, UInt64(note) ?? 0)
            var history = History(note: note)
            for step in 0..<Int.random(in: 1...3, using: &chance) where history.deletion == nil {
                let seen = try await wire.send("GET", "/v1/notes/\(note)")
                guard let shown = seen.json else { throw NeverCame(description: "\(note): \(seen.text)") }
                var fields: [String] = []
                if let tag = seen.head["etag"], Int.random(in: 0..<3, using: &chance) == 0 { fields = ["If-Match: \(tag)"] }
                if Int.random(in: 0..<10, using: &chance) == 0 {
                    let id = try await device.queue("DELETE", "/v1/notes/\(note)", fields: fields, on: wire)
                    history = History(note: note, deletion: id)
                    break
                }
                let change = history.change(shown, by: "\(name)\(note)-\(step)", &chance)
                let replaces = Bool.random(using: &chance)
                let body = replaces ? shown.merging(change) : change
                _ = try await device.queue(replaces ? "PUT" : "PATCH", "/v1/notes/\(note)", body, fields: fields, on: wire)
            }
            return history
        }
    }
}

extension History {
    /// Makes one random change and records it.
    fileprivate mutating func change(_ shown: JSONValue, by name: String, _ chance: inout Chance) -> JSONValue {
        var change: JSONValue = [:]
        let kinds = ["title", "status", "tags", "count"].shuffled(using: &chance).prefix(Int.random(in: 1...3, using: &chance))
        for kind in kinds {
            switch kind {
            case "tags":
                var list = shown["tags"]?.array ?? []
                if let last = list.last, Int.random(in: 0..<3, using: &chance) == 0 {
                    list.removeLast()
                    tags.remove(last.string ?? "")
                } else {
                    list.append(.string("tag-" + name))
                    tags.insert("tag-" + name)
                }
                change[kind] = .array(list)
            case "count":
                let step = Int64.random(in: 1...9, using: &chance)
                counted += step
                change[kind] = .number(JSONNumber((shown["count"]?.integer ?? 0) + step))
            default:
                values[kind] = "\(kind)-\(name)"
                change[kind] = .string("\(kind)-\(name)")
            }
        }
        return change
    }
}

extension Device {
    /// Returns every conflict record in full.
    func records() async throws -> [JSONValue] {
        var records: [JSONValue] = []
        for summary in try await items("/v1/conflicts?state=all") {
            let id = summary["id"]?.string ?? ""
            if let record = try await admin.send("GET", "/v1/conflicts/\(id)").json { records.append(record) }
        }
        return records
    }
}
