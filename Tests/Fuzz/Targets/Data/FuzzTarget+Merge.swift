// Three-way merging: a place that one side left unchanged takes the other side's value, and no value is invented (docs/outbox.md#fields).
import RockpoolCore

extension FuzzTarget {
    /// Lines: base, mine, theirs, an object of pointers and the names of their rules.
    static func merge(_ input: FuzzInput) throws(BrokenProperty) {
        guard let base = try? JSONValue.parse(input.bytes(0)), let mine = try? JSONValue.parse(input.bytes(1)),
            let theirs = try? JSONValue.parse(input.bytes(2))
        else { return }
        var words: [String: String] = [:]
        for (place, word) in (try? JSONValue.parse(input.bytes(3)))?.object ?? JSONObject() { words[place] = word.string }
        let rules = MergeRules(Resource(collection: "/notes", id: "/only/the/upstream/writes/this", fields: words))
        let merge = ThreeWayMerge(base: base, mine: mine, theirs: theirs, rules: rules, mineIsNewer: true)
        try hold((try? JSONValue.parse(merge.merged.serialized())) == merge.merged, "what is merged can be sent")
        for field in merge.fields {
            try hold(field.mine != field.base || field.theirs != field.base, "a listed place is one that differs")
            try hold(
                field.isConflicting == (field.mine != field.base && field.theirs != field.base && field.mine != field.theirs),
                "a place conflicts that both changed, and differently")
        }
        let never = ThreeWayMerge(base: nil, mine: mine, theirs: theirs, rules: rules)
        try hold(never.merged == theirs, "nothing is merged without a base")
        let plain = MergeRules(Resource(collection: "/notes", id: "/only/the/upstream/writes/this"))
        let asked = ThreeWayMerge(base: base, mine: mine, theirs: theirs, rules: plain)
        let mirrored = ThreeWayMerge(base: base, mine: theirs, theirs: mine, rules: plain)
        try hold(asked.isResolved == mirrored.isResolved, "whose side is whose does not matter to whether it can be merged")
        if asked.isResolved { try hold(asked.merged == mirrored.merged, "whose side is whose does not matter") }
        for rules in [rules, plain] { try oneSide(base, mine, rules) }
        let same = ThreeWayMerge(base: base, mine: mine, theirs: mine, rules: plain)
        try hold(same.isResolved && same.merged == mine, "what both did is done")
    }

    private static func oneSide(_ base: JSONValue, _ changed: JSONValue, _ rules: MergeRules) throws(BrokenProperty) {
        let mine = ThreeWayMerge(base: base, mine: changed, theirs: base, rules: rules)
        try hold(mine.isResolved && mine.merged == changed, "what only I changed is as I changed it")
        let theirs = ThreeWayMerge(base: base, mine: base, theirs: changed, rules: rules)
        try hold(theirs.isResolved && theirs.merged == changed, "what only they changed is as they changed it")
    }
}
