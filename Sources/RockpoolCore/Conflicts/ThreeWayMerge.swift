// Three-way merging of JSON: a change by one side is taken, a change by both is settled by rule (docs/outbox.md#fields).
import OrderedCollections

/// The merge of two changes of one representation, place by place.
///
/// Objects are merged member by member where all three sides are objects; any other value is one place, arrays too unless their rule is
/// `keyed`. A place that both sides changed is settled by its rule. A person decides where there is no rule or the rule does not fit, so
/// that the merge never silently creates a record that neither side wrote. In places that only the upstream writes, its value is taken and
/// not listed.
package struct ThreeWayMerge: Hashable, Sendable {
    /// The members in the order of theirs, followed by mine's new ones; theirs where a person has to decide.
    package let merged: JSONValue
    /// Every place where a side differs from the base, in the order of `merged`. An element of a keyed array has its index in `merged`, or
    /// `-` when it is not there, so that restoring it would append it.
    package let fields: [MergedField]
    /// True if no place is left to a person.
    package let isResolved: Bool

    /// Without a base nothing can be merged: a person decides every place that differs.
    /// - Parameter mineIsNewer: `true` if mine was written after theirs, for `lww`; nil where it is unknown.
    package init(base: JSONValue?, mine: JSONValue, theirs: JSONValue, rules: MergeRules, mineIsNewer: Bool? = nil) {
        var walk = MergeWalk(mineIsNewer: mineIsNewer)
        if let base {
            merged = walk.value(base: base, mine: mine, theirs: theirs, rules: rules) ?? theirs
            (fields, isResolved) = (walk.fields, walk.isResolved)
        } else {
            _ = walk.value(base: .object(JSONObject()), mine: mine, theirs: theirs, rules: rules)
            fields = walk.fields.filter { $0.mine != $0.theirs }.map {
                MergedField(
                    pointer: $0.pointer, base: nil, mine: $0.mine, theirs: $0.theirs, merged: nil, isConflicting: true)
            }
            (merged, isResolved) = (theirs, fields.isEmpty)
        }
    }
}

/// One traversal of the three representations.
private struct MergeWalk {
    let mineIsNewer: Bool?
    private(set) var fields: [MergedField] = []
    private(set) var isResolved = true
    private var path: [String] = []

    init(mineIsNewer: Bool?) { self.mineIsNewer = mineIsNewer }

    /// Returns the merged value of this place; nil where the member is absent. The parser has bounded the depth.
    mutating func value(base: JSONValue?, mine: JSONValue?, theirs: JSONValue?, rules: MergeRules) -> JSONValue? {
        if rules.isManaged { return theirs }
        if let base = base?.object, let mine = mine?.object, let theirs = theirs?.object {
            return .object(members(base: base, mine: mine, theirs: theirs, rules: rules))
        }
        // Two equal changes of a counter add up; any other equal change by both sides counts once.
        if mine == base || theirs == base || mine == theirs && rules.strategy != .counter {
            let merged = mine == base || mine == theirs ? theirs : mine
            if mine != base || theirs != base { record(base: base, mine: mine, theirs: theirs, merged: merged) }
            return merged
        }
        if case .keyed(let id)? = rules.strategy, let lists = KeyedLists(base: base, mine: mine, theirs: theirs, id: id) {
            return .array(elements(lists, rules: rules.below("*")))
        }
        switch rules.strategy?.settle(base: base, mine: mine, theirs: theirs, mineIsNewer: mineIsNewer) ?? .open {
        case .value(let merged):
            record(base: base, mine: mine, theirs: theirs, merged: merged)
            return merged
        case .open where mine == theirs:
            record(base: base, mine: mine, theirs: theirs, merged: theirs)
            return theirs
        case .open:
            record(base: base, mine: mine, theirs: theirs, merged: nil)
            isResolved = false
            return theirs
        }
    }

    private mutating func members(base: JSONObject, mine: JSONObject, theirs: JSONObject, rules: MergeRules) -> JSONObject {
        var merged = JSONObject()
        let added = mine.names.filter { theirs[$0] == nil }
        let gone = base.names.filter { theirs[$0] == nil && mine[$0] == nil }
        for name in theirs.names + added + gone {
            path.append(name)
            merged[name] = value(base: base[name], mine: mine[name], theirs: theirs[name], rules: rules.below(name))
            path.removeLast()
        }
        return merged
    }

    private mutating func elements(_ lists: KeyedLists, rules: MergeRules) -> [JSONValue] {
        var merged: [JSONValue] = []
        for key in lists.order {
            let first = fields.count
            path.append(String(merged.count))
            let element = value(base: lists.base[key], mine: lists.mine[key], theirs: lists.theirs[key], rules: rules)
            path.removeLast()
            if let element {
                merged.append(element)
            } else {
                for place in first..<fields.count { fields[place].pointer.tokens[path.count] = "-" }
            }
        }
        return merged
    }

    private mutating func record(base: JSONValue?, mine: JSONValue?, theirs: JSONValue?, merged: JSONValue?) {
        let isConflicting = mine != base && theirs != base && mine != theirs
        fields.append(
            MergedField(
                pointer: JSONPointer(tokens: path), base: base, mine: mine, theirs: theirs, merged: merged, isConflicting: isConflicting))
    }
}

/// One place of a merge. A nil value means that the member is absent on that side.
package struct MergedField: Hashable, Sendable {
    package var pointer: JSONPointer
    package var base: JSONValue?
    package var mine: JSONValue?
    package var theirs: JSONValue?
    /// The merged value; also nil where a person has to decide.
    package var merged: JSONValue?
    /// True if both sides changed the place differently: then one side has lost a value, or a person decides.
    package var isConflicting: Bool

    package init(
        pointer: JSONPointer, base: JSONValue?, mine: JSONValue?, theirs: JSONValue?, merged: JSONValue?, isConflicting: Bool
    ) {
        self.pointer = pointer
        self.base = base
        self.mine = mine
        self.theirs = theirs
        self.merged = merged
        self.isConflicting = isConflicting
    }
}

/// The rule of one place, and those of the places within it (docs/reference/behaviour.md#conflicts `fields`, docs/outbox.md#fields). A rule
/// covers everything below it unless a deeper rule is configured; `""` is the whole representation, `*` the elements of a keyed array.
package struct MergeRules: Hashable, Sendable {
    /// Nil where no rule was configured: then a person decides.
    package private(set) var strategy: FieldStrategy?
    /// True if only the upstream writes this place: its id, its version, its times.
    private(set) var isManaged = false
    private var within: [String: MergeRules] = [:]

    /// Reads the rules of a resource. Unknown words are ignored, because the configuration has rejected them.
    /// - Parameters:
    ///   - always: One rule for every field instead of the resource's own.
    ///   - asksForCounters: Theirs may include my change of a counter already, and adding it could count it twice, so a person decides.
    package init(_ resource: Resource, always: FieldStrategy? = nil, asksForCounters: Bool = false) {
        strategy = always
        let named = always == nil ? resource.fields : [:]
        let rules = named.compactMap { text, word in
            JSONPointer(text).flatMap { place in FieldStrategy(word).map { (place: place, strategy: $0) } }
        }
        // Outer rules first, because inner ones inherit from them.
        for rule in rules.sorted(by: { $0.place.tokens.count < $1.place.tokens.count }) {
            set(rule.place.tokens[...]) { $0.strategy = asksForCounters && rule.strategy == .counter ? .ask : rule.strategy }
        }
        for place in RepresentationShape(resource).stamps { set(place.tokens[...]) { $0.isManaged = true } }
    }

    private init(inheriting strategy: FieldStrategy?) { self.strategy = strategy }

    /// Returns the rules of a member, or of the elements with `*`.
    func below(_ name: String) -> MergeRules { within[name] ?? MergeRules(inheriting: strategy) }

    private mutating func set(_ path: ArraySlice<String>, _ change: (inout MergeRules) -> Void) {
        guard let name = path.first else { return change(&self) }
        within[name, default: MergeRules(inheriting: strategy)].set(path.dropFirst(), change)
    }
}

/// Three states of an array with identified elements (docs/outbox.md#fields `keyed:id`).
struct KeyedLists {
    typealias Elements = OrderedDictionary<JSONValue, JSONValue>

    let base, mine, theirs: Elements

    /// Nil unless mine, theirs, and the base where there is one, are arrays in which each element has a unique id.
    init?(base: JSONValue?, mine: JSONValue?, theirs: JSONValue?, id: JSONPointer) {
        guard let base = base == nil ? [:] : Self.elements(of: base, id: id), let mine = Self.elements(of: mine, id: id),
            let theirs = Self.elements(of: theirs, id: id)
        else { return nil }
        (self.base, self.mine, self.theirs) = (base, mine, theirs)
    }

    /// All keys. The order is that of theirs, or of mine where only mine changed it; the other side's additions follow, then the keys that
    /// both removed.
    var order: [JSONValue] {
        let isMine = keepsOrder(theirs) && !keepsOrder(mine)
        let (leading, following) = isMine ? (mine, theirs) : (theirs, mine)
        return Array(OrderedSet(leading.keys).union(following.keys).union(base.keys))
    }

    private func keepsOrder(_ side: Elements) -> Bool {
        side.keys.filter { base[$0] != nil } == base.keys.filter { side[$0] != nil }
    }

    private static func elements(of value: JSONValue?, id: JSONPointer) -> Elements? {
        guard let array = value?.array else { return nil }
        var elements: Elements = [:]
        for element in array {
            guard let key = id.get(in: element), key.identifier != nil, elements.updateValue(element, forKey: key) == nil else {
                return nil
            }
        }
        return elements
    }
}

// MARK: - Text by lines

/// Three-way merging of text by lines (diff3): a change by one side is taken, changes by both must be equal.
enum LineMerge {
    /// Returns the merged text; nil where changes of both sides overlap or touch, or where a side has too many lines or changes.
    static func merged(base: String, mine: String, theirs: String) -> String? {
        var lines = LineNumbers()
        let (base, mine, theirs) = (lines.numbers(of: base), lines.numbers(of: mine), lines.numbers(of: theirs))
        guard let mineHunks = LineDifference.hunks(from: base, to: mine), let theirHunks = LineDifference.hunks(from: base, to: theirs)
        else { return nil }
        var (mineLeft, theirsLeft) = (mineHunks[...], theirHunks[...])
        var (merged, position): ([Int], Int) = ([], 0)
        while let start = [mineLeft.first, theirsLeft.first].compactMap({ $0?.old.lowerBound }).min() {
            // Hunks that touch are merged as one: adjacent lines written independently need not make sense together.
            var region = start..<start
            var (mineHere, theirsHere): ([LineHunk], [LineHunk]) = ([], [])
            while true {
                if let hunk = mineLeft.first, hunk.old.lowerBound <= region.upperBound {
                    mineHere.append(mineLeft.removeFirst())
                    region = start..<max(region.upperBound, hunk.old.upperBound)
                } else if let hunk = theirsLeft.first, hunk.old.lowerBound <= region.upperBound {
                    theirsHere.append(theirsLeft.removeFirst())
                    region = start..<max(region.upperBound, hunk.old.upperBound)
                } else {
                    break
                }
            }
            merged += base[position..<start]
            position = region.upperBound
            let ours = mine[counterpart(of: region, in: mineHere)]
            let others = theirs[counterpart(of: region, in: theirsHere)]
            if theirsHere.isEmpty || !mineHere.isEmpty && ours == others {
                merged += ours
            } else if mineHere.isEmpty {
                merged += others
            } else {
                return nil
            }
        }
        return lines.text(of: merged + base[position...])
    }

    /// Returns the lines of a side for a region of the base, from its hunks there; empty for a side without a hunk there.
    private static func counterpart(of region: Range<Int>, in hunks: [LineHunk]) -> Range<Int> {
        guard let first = hunks.first, let last = hunks.last else { return 0..<0 }
        let start = first.new.lowerBound - (first.old.lowerBound - region.lowerBound)
        return start..<last.new.upperBound + (region.upperBound - last.old.upperBound)
    }
}

/// Lines mapped to numbers: lines with equal bytes have the same number.
private struct LineNumbers {
    private var known: [ArraySlice<UInt8>: Int] = [:]
    private var lines: [ArraySlice<UInt8>] = []

    mutating func numbers(of text: String) -> [Int] {
        Array(text.utf8).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            if let number = known[line] { return number }
            known[line] = lines.count
            lines.append(line)
            return lines.count - 1
        }
    }

    func text(of numbers: [Int]) -> String {
        String(decoding: Array(numbers.map { lines[$0] }.joined(separator: [UInt8(ascii: "\n")])), as: UTF8.self)
    }
}

/// A range of the old list and its replacement in the new list; one of the two may be empty.
struct LineHunk: Hashable {
    var old: Range<Int>
    var new: Range<Int>
}

enum LineDifference {
    /// The maximum number of lines of one text.
    static let lineLimit = 10_000
    /// The maximum number of lines removed and added: time grows with lines × edits, memory with edits².
    static let editLimit = 400

    /// Returns the ranges that differ, in order, with at least one common line between two of them; nil past the limits.
    static func hunks(from old: [Int], to new: [Int]) -> [LineHunk]? {
        guard old.count <= lineLimit, new.count <= lineLimit else { return nil }
        let head = zip(old, new).prefix { $0 == $1 }.count
        let tail = zip(old.dropFirst(head).reversed(), new.dropFirst(head).reversed()).prefix { $0 == $1 }.count
        guard let steps = edits(old: Array(old[head..<old.count - tail]), new: Array(new[head..<new.count - tail])) else { return nil }
        var hunks: [LineHunk] = []
        for step in steps {
            let (old, new) = (step.old + head, step.new + head)
            let hunk = LineHunk(old: old..<old + (step.isRemoval ? 1 : 0), new: new..<new + (step.isRemoval ? 0 : 1))
            if let last = hunks.last, last.old.upperBound == hunk.old.lowerBound, last.new.upperBound == hunk.new.lowerBound {
                hunks[hunks.count - 1] = LineHunk(
                    old: last.old.lowerBound..<hunk.old.upperBound, new: last.new.lowerBound..<hunk.new.upperBound)
            } else {
                hunks.append(hunk)
            }
        }
        return hunks
    }

    /// The removal or addition of one line, at these positions of the two lists.
    private struct Edit {
        var (old, new): (Int, Int)
        var isRemoval: Bool
    }

    /// Returns the shortest edit script. Row `d` of `rows` contains, for each diagonal k = -d, -d+2 … d, the position in `old` that `d`
    /// edits reach.
    private static func edits(old: [Int], new: [Int]) -> [Edit]? {
        var rows: [[Int]] = []
        for d in 0...min(editLimit, old.count + new.count) {
            var row: [Int] = []
            row.reserveCapacity(d + 1)
            for place in 0...d {
                let k = 2 * place - d
                var x = d == 0 ? 0 : isAddition(rows[d - 1], at: place) ? rows[d - 1][place] : rows[d - 1][place - 1] + 1
                while x < old.count, x - k < new.count, x - k >= 0, old[x] == new[x - k] { x += 1 }
                row.append(x)
                if x >= old.count, x - k >= new.count { return script(from: rows + [row], to: place) }
            }
            rows.append(row)
        }
        return nil
    }

    /// True if the path to this place of the next row comes from the diagonal above, which adds a line; false if from the diagonal below.
    private static func isAddition(_ row: [Int], at place: Int) -> Bool {
        place == 0 || place < row.count && row[place - 1] < row[place]
    }

    private static func script(from rows: [[Int]], to end: Int) -> [Edit] {
        var edits: [Edit] = []
        var place = end
        for d in stride(from: rows.count - 1, to: 0, by: -1) {
            let isAddition = isAddition(rows[d - 1], at: place)
            if !isAddition { place -= 1 }
            let x = rows[d - 1][place]
            edits.append(Edit(old: x, new: x - (2 * place - (d - 1)), isRemoval: !isAddition))
        }
        return edits.reversed()
    }
}
