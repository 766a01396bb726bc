// Properties of every merge, over random values from seeds (issue 5.6).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct MergePropertyTests {
    private func merge(
        _ base: JSONValue, _ mine: JSONValue, _ theirs: JSONValue, _ rules: [String: String] = [:], newer: Bool? = nil
    ) -> ThreeWayMerge {
        ThreeWayMerge(base: base, mine: mine, theirs: theirs, rules: MergeRules(.merging(.fieldMerge, rules)), mineIsNewer: newer)
    }

    /// Returns an object after random edits: members changed, added and removed, also one level down.
    private func edited(_ base: JSONValue, _ random: inout SeededGenerator, names: [String] = ["a", "b", "c"]) -> JSONValue {
        var members = base.object ?? JSONObject()
        for name in names where random.chance(50) {
            if let inner = members[name], inner.object != nil, random.chance(60) {
                members[name] = edited(inner, &random)
            } else {
                members[name] = random.chance(25) ? nil : random.json(depth: 2)
            }
        }
        return .object(members)
    }

    private static let words = ["server", "client", "max", "min", "set", "keyed:a", "counter", "flag", "text3", "ask", "lww"]

    @Test(arguments: 0..<10) func oneSideUnchangedGivesTheOther(_ seed: Int) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            let base = random.object()
            let other = edited(base, &random)
            let rules = ["": random.one(of: Self.words), "/a": random.one(of: Self.words)]
            // Unchanged mine gives exactly theirs, with digits and order.
            #expect(written(merge(base, base, other, rules).merged) == written(other))
            #expect(merge(base, other, base, rules).merged == other)
            #expect(merge(base, base, base, rules).fields.isEmpty)
            for merged in [merge(base, other, base, rules), merge(base, base, other, rules)] {
                #expect(merged.isResolved && merged.fields.allSatisfy { !$0.isConflicting })
            }
            if !rules.values.contains("counter") { #expect(written(merge(base, other, other, rules).merged) == written(other)) }
        }
    }

    @Test(arguments: 0..<10) func mergesAreDeterministicAndStable(_ seed: Int) {
        var random = SeededGenerator(seed: seed)
        var open = 0
        for _ in 0..<200 {
            let base = random.object()
            let (mine, theirs) = (edited(base, &random), edited(base, &random))
            let rules = ["": random.one(of: Self.words), "/a": random.one(of: Self.words)]
            let merged = merge(base, mine, theirs, rules, newer: random.chance(50))
            // Merging a result into theirs again gives the same result.
            #expect(merge(theirs, merged.merged, theirs, rules).merged == merged.merged)
            if merged.isResolved == false { open += 1 }
            // The need for a user's decision is symmetric in mine and theirs.
            #expect(merge(base, theirs, mine).isResolved == merge(base, mine, theirs).isResolved)
            // Every listed field has the value of the merged object at its place.
            for field in merged.fields where !field.pointer.tokens.contains("-") && field.merged != nil {
                #expect(field.pointer.get(in: merged.merged) == field.merged)
            }
            #expect(merge(base, mine, theirs, ["": "client"]).isResolved && merge(base, mine, theirs, ["": "server"]).isResolved)
        }
        #expect(open > 0)
    }

    @Test(arguments: 0..<10) func disjointEditsCommute(_ seed: Int) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            var base = random.object()
            base["deep"] = random.object()
            let names = ["a", "b", "c"].shuffled(using: &random)
            var mine = edited(base, &random, names: Array(names[..<1]))
            let theirs = edited(base, &random, names: Array(names[1...]))
            mine["deep"] = edited(base["deep"] ?? [:], &random)
            let (one, other) = (merge(base, mine, theirs), merge(base, theirs, mine))
            #expect(one.isResolved && one.merged == other.merged)
            for name in ["a", "b", "c"] { #expect(one.merged[name] == (name == names[0] ? mine : theirs)[name]) }
            #expect(one.merged["deep"] == mine["deep"])
        }
    }

    /// Devices that each add to their own copy, merged in any order, give the exact sum, including all digits.
    @Test(arguments: 0..<20) func countersLoseNoStep(_ seed: Int) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<20 {
            var (server, total) = (JSONValue.number(JSONNumber(0)), Int64(0))
            for _ in 0..<20 {
                let saw = server
                for _ in 0..<random.one(of: [1, 2, 3]) {
                    let step = random.one(of: [1, 1, 25, 250, -3] as [Int64])
                    total += step
                    let mine = merge(["n": 0], ["n": hundredths(step)], ["n": saw], ["/n": "counter"]).merged["n"] ?? saw
                    server = merge(["n": saw], ["n": mine], ["n": server], ["/n": "counter"]).merged["n"] ?? server
                }
            }
            #expect(server == hundredths(total), "seed \(seed)")
        }
    }

    private func hundredths(_ count: Int64) -> JSONValue {
        let digits = String(count.magnitude)
        let padded = String(repeating: "0", count: max(0, 3 - digits.count)) + digits
        let literal = (count < 0 ? "-" : "") + padded.dropLast(2) + "." + padded.suffix(2)
        return JSONNumber(literal: literal).map(JSONValue.number) ?? .null
    }

    @Test(arguments: 0..<20) func setsLoseNoAdditionAndNoRemoval(_ seed: Int) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            func some(_ range: Range<Int>) -> [JSONValue] {
                range.filter { _ in random.chance(50) }.shuffled(using: &random).map { .number(JSONNumber(Int64($0))) }
            }
            let base = some(0..<6)
            let (mine, theirs) = (some(0..<9), some(0..<9))
            let merged = merge(["s": .array(base)], ["s": .array(mine)], ["s": .array(theirs)], ["/s": "set"])
            let expected = Set(base).intersection(mine).intersection(theirs)
                .union(Set(mine).subtracting(base)).union(Set(theirs).subtracting(base))
            #expect(merged.isResolved)
            #expect(Set(merged.merged["s"]?.array ?? []) == expected)
            #expect(merged.merged["s"]?.array?.count == expected.count)
        }
    }

    /// Changes of different lines by one side each, separated by an unchanged line, are all merged; a line changed by both sides never is.
    @Test(arguments: 0..<20) func textsMergeByLines(_ seed: Int) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<50 {
            var (base, mine, theirs, both): ([String], [String], [String], [String]) = ([], [], [], [])
            let clash = random.chance(30) ? Int.random(in: 0..<12, using: &random) : nil
            for block in 0..<12 {
                let line = random.one(of: ["x", "y", ""])
                let change = random.one(of: [[], ["m\(block)"], ["m", "m\(block)"], [line, "m\(block)"]] as [[String]])
                let isMine = random.chance(50)
                let isChanged = random.chance(60) || block == clash
                base += ["= \(block)", line]
                mine += ["= \(block)"] + (block == clash ? ["mine"] : isChanged && isMine ? change : [line])
                theirs += ["= \(block)"] + (block == clash ? ["theirs"] : isChanged && !isMine ? change : [line])
                both += ["= \(block)"] + (isChanged ? change : [line])
            }
            func text(_ lines: [String]) -> JSONValue { ["t": .string(lines.joined(separator: "\n"))] }
            for (one, other) in [(mine, theirs), (theirs, mine)] {
                let merged = merge(text(base), text(one), text(other), ["/t": "text3"])
                #expect(merged.isResolved == (clash == nil), "seed \(seed)")
                if clash == nil { #expect(merged.merged == text(both), "seed \(seed)") }
            }
        }
    }

    /// For any method and media type, a resend turns theirs into the result in its record.
    @Test(arguments: 0..<20) func resendsDoWhatTheySay(_ seed: Int) throws {
        var random = SeededGenerator(seed: seed)
        var lines: Set<String> = []
        for round in 0..<150 {
            var base = random.object(nulls: random.chance(50))
            base["id"] = "1"
            let (mine, theirs) = (edited(base, &random), edited(base, &random))
            let strategy = random.one(of: [Resource.Conflict.fieldMerge, .clientWins])
            let resource = Resource.merging(strategy, ["": random.one(of: ["client", "server"]), "/a": "keyed:a"])
            let (method, type, body) = random.write(from: base, to: mine)
            let met = ConflictCase(method, body, base: written(base), theirs: written(theirs), resource, type: type)
            let verdict = met.verdict()
            guard let resend = verdict.resend, let result = verdict.result else { continue }
            lines.insert("\(resend.request.method) \(resend.request.fields[.contentType] ?? "")")
            var server = ModelAPI(items: ["1": (theirs, 2)])
            let answer = server.answer(resend.request, resend.body)
            #expect(answer.status == 200)
            #expect(server.bare("1") == (try JSONValue.parse(result.body)), "seed \(seed), round \(round): \(resend.line)")
        }
        #expect(lines.count == 4)
    }
}

/// Every pair of merge patches over a small set of values.
@Suite struct MergePatchCompositionTests {
    private static let leaves: [JSONValue?] = [nil, 1, .null, [:], ["z": 1], ["z": .null]]
    private static let values: [JSONValue?] =
        [nil, 1, .null]
        + leaves.flatMap { x in
            leaves.map { y in
                var members = JSONObject()
                (members["x"], members["y"]) = (x, y)
                return .object(members)
            }
        }
    private static let patches: [JSONValue] = values.map { value in
        var members = JSONObject()
        members["a"] = value
        return .object(members)
    }
    /// The results of patches, and objects with members that no patch names.
    private static let items: [JSONValue] =
        patches.filter { !written($0).contains("null") } + [["a": ["w": 1]], ["a": ["x": ["w": 1], "y": ["w": 1], "w": 1]]]

    /// Two patches are squashed exactly when one patch has the same effect on every item as both.
    @Test func squashedExactlyWhereTheyCompose() throws {
        func candidate(_ sequence: Int64, _ patch: JSONValue) -> SquashCandidate {
            SquashCandidate(
                sequence: sequence, lane: "l", previous: sequence - 1, entity: "/notes/1", method: .patch, target: "/notes/1",
                contentType: "application/merge-patch+json", body: patch.serialized())
        }
        var (squashed, kept) = (0, 0)
        for first in Self.patches {
            let once = Self.items.map { $0.merging(first) }
            for second in Self.patches {
                let twice = once.map { $0.merging(second) }
                switch Squash.decide(earlier: candidate(1, first), later: candidate(2, second)) {
                case .replace(let body, let method):
                    squashed += 1
                    let joined = try JSONValue.parse(body)
                    #expect(method == .patch && Self.items.map { $0.merging(joined) } == twice, "\(written(first)) then \(written(second))")
                default:
                    kept += 1
                    let isPossible = Self.patches.contains { patch in zip(Self.items, twice).allSatisfy { $0.merging(patch) == $1 } }
                    #expect(!isPossible, "\(written(first)) then \(written(second))")
                }
            }
        }
        #expect(squashed > 500 && kept > 100)
    }
}
