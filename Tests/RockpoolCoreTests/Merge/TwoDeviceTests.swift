// Random histories of two devices: they converge with the server, and no written value is lost without a record (docs/outbox.md#properties;
// issue 5).
import HTTPTypes
import RockpoolCore
import Testing

private struct History {
    var server = ModelAPI()
    var devices: [Device]
    var tokens: [String] = []
    private var random: SeededGenerator

    init(_ resource: Resource, seed: Int) {
        random = SeededGenerator(seed: seed)
        devices = [Device(resource), Device(resource)]
        for id in ["1", "2"] {
            var request = RequestHead.note(.put, id: id)
            request.fields[.ifNoneMatch] = "*"
            _ = server.answer(request, Array(#"{"a":"begin","b":"begin"}"#.utf8))
        }
    }

    mutating func run(losesAnswers: Bool = true, write: (inout History, Int) -> Void) -> Bool {
        for _ in 0..<2 {
            for place in devices.indices { devices[place].pull(server) }
            for _ in 0..<random.one(of: [2, 4, 7]) { write(&self, random.one(of: [0, 1])) }
            var steps = 0
            while devices.contains(where: { !$0.queue.isEmpty }) {
                let loses = losesAnswers && random.chance(10)
                devices[random.one(of: [0, 1])].step(&server, losesAnswer: loses, &random)
                steps += 1
                if steps > 2000 { return false }
            }
        }
        for place in devices.indices { devices[place].pull(server) }
        return true
    }

    mutating func write(_ place: Int) {
        tokens.append("t\(tokens.count)")
        devices[place].write(tokens[tokens.count - 1], at: server.now, &random)
    }

    mutating func count(_ place: Int, _ step: Int64) { devices[place].count(random.one(of: ["1", "2"]), step, at: server.now, &random) }

    mutating func oneOf<T>(_ choices: [T]) -> T { random.one(of: choices) }

    /// Written values that are neither on the server, nor in a conflict record, nor replaced by a write based on them.
    var lost: [String] {
        let texts =
            server.items.values.map { written($0.object) }
            + devices.flatMap(\.conflicts).flatMap { [$0.base, $0.mine, $0.theirs, $0.result] }.map { written($0) }
        let replacements = devices.flatMap(\.done).filter { !$0.isYielded }.map { (written($0.base), written($0.mine)) }
        return tokens.filter { token in
            let token = "\"\(token)\""
            return !texts.contains { $0.contains(token) } && !replacements.contains { $0.0.contains(token) && !$0.1.contains(token) }
                && devices.contains { $0.done.contains { written($0.mine).contains(token) } }
        }
    }
}

@Suite struct TwoDeviceTests {
    @Test(arguments: Resource.Conflict.allCases, 0..<10)
    func theyAgreeAndNothingIsLostUnseen(_ strategy: Resource.Conflict, _ block: Int) {
        var (met, resolutions): (Int, Set<Conflict.Resolution?>) = (0, [])
        for seed in block * 100..<(block + 1) * 100 {
            let resource = Resource.merging(strategy, ["/b": seed % 3 == 0 ? "lww" : seed % 3 == 1 ? "client" : "ask"])
            var history = History(resource, seed: seed)
            let hasEnded = history.run { $0.write($1) }
            #expect(hasEnded, "seed \(seed)")
            for device in history.devices {
                #expect(device.view == history.server.items.mapValues(\.object), "seed \(seed)")
                met += device.conflicts.count
                resolutions.formUnion(device.conflicts.map(\.resolution))
                // Every record is decided, and holds both sides unless one was deleted.
                for verdict in device.conflicts {
                    #expect(verdict.resolution != nil && verdict.decidedBy != nil)
                    #expect(verdict.mine != nil || verdict.kind == .deleteEdit || verdict.base == nil, "seed \(seed)")
                    #expect(verdict.mine != nil || verdict.theirs != nil)
                }
            }
            #expect(history.lost.isEmpty, "seed \(seed): \(history.lost)")
        }
        #expect(met > 50 && !resolutions.isEmpty)
    }

    /// Counters are merged: in any order, the final value includes all steps.
    @Test(arguments: 0..<10) func countersEndAtTheSum(_ block: Int) {
        for seed in block * 20..<(block + 1) * 20 {
            var history = History(.merging(.fieldMerge, ["/n": "counter"]), seed: seed)
            var total: Int64 = 0
            let hasEnded = history.run(losesAnswers: false) { history, place in
                let step = history.oneOf([1, 1, 2, -1] as [Int64])
                total += step
                history.count(place, step)
            }
            let sum = history.server.items.values.compactMap { $0.object["n"]?.integer }.reduce(0, +)
            #expect(hasEnded && sum == total, "seed \(seed)")
            for device in history.devices { #expect(device.view == history.server.items.mapValues(\.object)) }
        }
    }
}
