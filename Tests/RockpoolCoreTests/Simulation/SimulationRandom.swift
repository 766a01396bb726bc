// The only source of randomness of a run: its seed determines everything (SplitMix64).
import RockpoolCore

struct SimulationRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 0x1234_5678_9ABC_DEF1 }

    /// A seed far from those of its neighbours, whose sequences otherwise are this one, shifted.
    static func scattered(_ seed: UInt64) -> UInt64 {
        var random = SimulationRandom(seed: seed)
        return random.next()
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    /// Uniform in 0..<1.
    mutating func unit() -> Double { Double(next() >> 11) / 9_007_199_254_740_992 }

    mutating func chance(_ probability: Double) -> Bool { unit() < probability }

    mutating func number(_ range: ClosedRange<Int>) -> Int { range.lowerBound + Int(next() % UInt64(range.count)) }

    mutating func milliseconds(_ range: ClosedRange<Int>) -> TimeSpan { .milliseconds(Int64(number(range))) }

    mutating func pick<Value>(_ values: [Value]) -> Value { values[number(0...values.count - 1)] }
}
