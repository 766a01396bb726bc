// Hostile bytes: the parser rejects or accepts them, never traps, and serializes every accepted value unchanged
// (docs/security-model.md#hostile-numbers).
import RockpoolCore
import Testing

@Suite struct JSONFuzzTests {
    static let seeds = [
        #"{"a":[1,-0.5e+10,"x\u00e9\ud83d\ude00\n",null,true],"b":{"":{"~/":[]}}}"#, "[[[[[[1]]]]],{}]", "\"\u{e9}\u{1F600}\"", "-12.50E-3",
    ]

    @Test(arguments: seeds) func mutationsNeverTrap(_ seed: String) {
        var random = SystemRandomNumberGenerator()
        var understood = 0
        for _ in 0..<1000 {
            var bytes = Array(seed.utf8)
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                guard let index = bytes.indices.randomElement(using: &random) else { break }
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[index] = .random(in: 0...255, using: &random)
                case 1: bytes.remove(at: index)
                default: bytes.insert(contentsOf: bytes[index..<min(index + 5, bytes.count)], at: index)
                }
            }
            guard let value = try? JSONValue.parse(bytes) else { continue }
            understood += 1
            let again = try? JSONValue.parse(value.serialized())
            #expect(again == value && again?.serialized() == value.serialized(), "\(bytes)")
        }
        #expect(understood > 0)
    }

    @Test func everyPrefixIsRefusedOrWhole() {
        let bytes = Array(Self.seeds[0].utf8)
        for end in 0..<bytes.count { #expect(throws: JSONError.self) { try JSONValue.parse(Array(bytes[..<end])) } }
    }
}
