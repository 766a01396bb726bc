// The merge rules for a member that both sides changed, by the words of the configuration (docs/reference/behaviour.md#conflicts,
// docs/outbox.md#fields).

/// The rule of one field. It applies only where both sides changed the field differently: a change by one side alone is taken.
package enum FieldStrategy: Hashable, Sendable {
    case server, client, lastWriteWins, max, min, set, counter, flag, text, ask
    /// An array of objects, each identified by this member.
    case keyed(JSONPointer)

    /// Parses a word of the configuration; nil when it is unknown.
    package init?(_ word: String) {
        if let known = Self.simple.first(where: { $0.word == word }) {
            self = known.strategy
            return
        }
        guard word.hasPrefix("keyed:") else { return nil }
        let id = String(word.dropFirst("keyed:".count))
        guard !id.isEmpty, let place = id.hasPrefix("/") ? JSONPointer(id) : JSONPointer(tokens: [id]) else { return nil }
        self = .keyed(place)
    }

    /// All words, in the order of the documentation.
    package static var words: [String] { meanings.map(\.word) }

    private static let simple: [(word: String, strategy: FieldStrategy)] = [
        ("server", .server), ("client", .client), ("lww", .lastWriteWins), ("max", .max), ("min", .min), ("set", .set),
        ("counter", .counter), ("flag", .flag), ("text3", .text), ("ask", .ask),
    ]

    /// The effect of each word on a field that both sides changed.
    package static let meanings: [(word: String, meaning: String)] = [
        ("server", "theirs"),
        ("client", "mine"),
        ("lww", "the later of the two, as in last-write-wins; asks where the upstream gives no time"),
        ("max", "the greater of two numbers or two RFC 3339 times"),
        ("min", "the lesser of them"),
        ("set", "an array as a set: theirs, with what I added and without what I removed"),
        ("keyed:ID", "an array of objects, each named by its member `ID`: element by element, with the rules of `/list/*/…` within them"),
        ("counter", "theirs and the difference that I made, to the last digit"),
        ("flag", "true where either side set it"),
        ("text3", "text line by line; asks where both changed the same or neighbouring lines"),
        ("ask", "waits for a person; so does a field without a rule, and one whose values its rule does not fit"),
    ]
}

/// The merged value of one place that both sides changed (docs/outbox.md#fields): by state-based rules only, which need no history from the
/// server.
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

/// A decimal number of any length (RFC 8259 §6 sets no limit to their digits).
struct ExactDecimal {
    /// The largest accepted exponent; a larger one would be written with an unreasonable number of zeros.
    static let exponentLimit = 1000

    private var isNegative: Bool
    /// The digits of the value times 10^scale, most significant first, without leading zeros; none for zero.
    private var digits: [UInt8]
    /// Digits after the point.
    private var scale: Int

    private init(isNegative: Bool, digits: [UInt8], scale: Int) {
        self.digits = Array(digits.drop { $0 == 0 })
        self.isNegative = isNegative && !self.digits.isEmpty
        self.scale = scale
    }

    /// Nil when the exponent passes the limit.
    init?(_ number: JSONNumber) {
        let parts = number.literal.utf8.drop { $0 == UInt8(ascii: "-") }
            .split(maxSplits: 1) { $0 == UInt8(ascii: "e") || $0 == UInt8(ascii: "E") }
        guard let mantissa = parts.first, let exponent = parts.count > 1 ? Int(Substring(parts[1])) : 0,
            (-Self.exponentLimit...Self.exponentLimit).contains(exponent)
        else { return nil }
        let whole = mantissa.prefix { $0 != UInt8(ascii: ".") }
        let fraction = mantissa.dropFirst(whole.count + 1)
        let scale = fraction.count - exponent
        let digits = (Array(whole) + fraction).map { $0 - UInt8(ascii: "0") } + Array(repeating: 0, count: max(0, -scale))
        self.init(isNegative: number.literal.hasPrefix("-"), digits: digits, scale: max(0, scale))
    }

    /// The number as JSON, with as many digits after the point as the operand with the most.
    var number: JSONNumber {
        let padded = Array(repeating: 0, count: max(0, scale + 1 - digits.count)) + digits
        var text = padded.map { $0 + UInt8(ascii: "0") }
        if scale > 0 { text.insert(UInt8(ascii: "."), at: text.count - scale) }
        return JSONNumber(checked: (isNegative ? "-" : "") + String(decoding: text, as: UTF8.self))
    }

    static func + (a: Self, b: Self) -> Self {
        let scale = max(a.scale, b.scale)
        let (x, y) = (a.digits(at: scale), b.digits(at: scale))
        if a.isNegative == b.isNegative { return Self(isNegative: a.isNegative, digits: sum(x, y), scale: scale) }
        return precedes(x, y)
            ? Self(isNegative: b.isNegative, digits: difference(y, x), scale: scale)
            : Self(isNegative: a.isNegative, digits: difference(x, y), scale: scale)
    }

    static func - (a: Self, b: Self) -> Self { a + Self(isNegative: !b.isNegative, digits: b.digits, scale: b.scale) }

    static func < (a: Self, b: Self) -> Bool { (a - b).isNegative }

    private func digits(at scale: Int) -> [UInt8] {
        digits.isEmpty ? [] : digits + Array(repeating: 0, count: scale - self.scale)
    }

    private static func precedes(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        a.count == b.count ? a.lexicographicallyPrecedes(b) : a.count < b.count
    }

    private static func sum(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
        var (result, carry): ([UInt8], UInt8) = ([], 0)
        for place in 0..<max(a.count, b.count) {
            let total = digit(of: a, at: place) + digit(of: b, at: place) + carry
            result.append(total % 10)
            carry = total / 10
        }
        return (result + [carry]).reversed()
    }

    /// Requires `a` not less than `b`.
    private static func difference(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] {
        var (result, borrow): ([UInt8], UInt8) = ([], 0)
        for place in 0..<a.count {
            let (left, right) = (digit(of: a, at: place), digit(of: b, at: place) + borrow)
            borrow = left < right ? 1 : 0
            result.append(left + 10 * borrow - right)
        }
        return result.reversed()
    }

    /// Returns the digit at `place`, counted from the last; zero beyond the first.
    private static func digit(of digits: [UInt8], at place: Int) -> UInt8 {
        place < digits.count ? digits[digits.count - 1 - place] : 0
    }
}
