// The merged value of one place that both sides changed (docs/outbox.md#fields): by state-based rules only, which need no history from the
// server.

extension FieldStrategy {
    enum Settlement: Hashable {
        /// The merged value; nil removes the member.
        case value(JSONValue?)
        /// A person decides.
        case open
    }

    /// - Parameter mineIsNewer: `true` if mine was written after theirs; nil where it is unknown.
    func settle(base: JSONValue?, mine: JSONValue?, theirs: JSONValue?, mineIsNewer: Bool?) -> Settlement {
        switch self {
        case .server: .value(theirs)
        case .client: .value(mine)
        case .lastWriteWins: mineIsNewer.map { .value($0 ? mine : theirs) } ?? .open
        case .max: Self.isLess(mine, theirs).map { .value($0 ? theirs : mine) } ?? .open
        case .min: Self.isLess(mine, theirs).map { .value($0 ? mine : theirs) } ?? .open
        case .set: Self.union(base: base, mine: mine, theirs: theirs)
        case .counter: Self.count(base: base, mine: mine, theirs: theirs)
        case .flag: Self.either(mine: mine, theirs: theirs)
        case .text: Self.lines(base: base, mine: mine, theirs: theirs)
        case .keyed, .ask: .open
        }
    }

    /// Compares numbers and times exactly; nil for values without such an order.
    private static func isLess(_ a: JSONValue?, _ b: JSONValue?) -> Bool? {
        switch (a, b) {
        case (.number(let a), .number(let b)):
            guard let a = ExactDecimal(a), let b = ExactDecimal(b) else { return nil }
            return a < b
        case (.string(let a), .string(let b)):
            guard let a = RFC3339.parse(a), let b = RFC3339.parse(b) else { return nil }
            return a < b
        default: return nil
        }
    }

    /// (theirs ∪ added) − removed: an addition is never lost, a removal never undone.
    private static func union(base: JSONValue?, mine: JSONValue?, theirs: JSONValue?) -> Settlement {
        guard let mine = mine?.array, let theirs = theirs?.array, let base = base == nil ? [] : base?.array else { return .open }
        let removed = Set(base).subtracting(mine)
        var present = Set(base).union(theirs)
        let added = mine.filter { present.insert($0).inserted }
        return .value(.array(theirs.filter { !removed.contains($0) } + added))
    }

    /// theirs + (mine − base); a missing base counts as zero.
    private static func count(base: JSONValue?, mine: JSONValue?, theirs: JSONValue?) -> Settlement {
        let start = base.map { $0.isNull ? JSONNumber(0) : $0.number } ?? JSONNumber(0)
        guard let base = start.flatMap(ExactDecimal.init), let mine = mine?.number.flatMap(ExactDecimal.init),
            let theirs = theirs?.number.flatMap(ExactDecimal.init)
        else { return .open }
        return .value(.number((theirs + (mine - base)).number))
    }

    /// Both sides changed the flag, so one of them may have removed it: absent and null count as false.
    private static func either(mine: JSONValue?, theirs: JSONValue?) -> Settlement {
        func flag(_ value: JSONValue?) -> Bool? { value.map { $0.isNull ? false : $0.bool } ?? false }
        guard let mine = flag(mine), let theirs = flag(theirs) else { return .open }
        return .value(.bool(mine || theirs))
    }

    private static func lines(base: JSONValue?, mine: JSONValue?, theirs: JSONValue?) -> Settlement {
        guard let base = base?.string, let mine = mine?.string, let theirs = theirs?.string,
            let merged = LineMerge.merged(base: base, mine: mine, theirs: theirs)
        else { return .open }
        return .value(.string(merged))
    }
}
