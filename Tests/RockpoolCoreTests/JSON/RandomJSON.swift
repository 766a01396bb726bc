// Random values from a seed, the same on every machine, so that a failing seed can be run again.
import RockpoolCore

/// SplitMix64.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: Int) { state = UInt64(truncatingIfNeeded: seed) }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

    mutating func one<T>(of choices: [T]) -> T { choices[Int.random(in: 0..<choices.count, using: &self)] }

    /// Returns a small value with few names and values, so that two such values overlap.
    mutating func json(depth: Int = 3, nulls: Bool = true) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 8 : 4), using: &self) {
        case 0: nulls ? .null : .bool(true)
        case 1: .string(one(of: ["p", "q"]))
        case 2, 3: .number(JSONNumber(Int64.random(in: 0..<3, using: &self)))
        case 4: .array((0..<Int.random(in: 0..<3, using: &self)).map { _ in json(depth: depth - 1, nulls: nulls) })
        default: object(depth: depth, nulls: nulls)
        }
    }

    mutating func object(depth: Int = 3, nulls: Bool = true) -> JSONValue {
        var members = JSONObject()
        for name in ["a", "b", "c"] where chance(55) { members[name] = json(depth: depth - 1, nulls: nulls) }
        return .object(members)
    }
}
