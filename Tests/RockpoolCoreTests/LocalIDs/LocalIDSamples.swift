// Helpers of the local id tests: three ids, requests, and reproducible random numbers.
import HTTPTypes
import RockpoolCore

let firstID = LocalID.make(now: noon, random: (1, 2))
let secondID = LocalID.make(now: noon, random: (3, 4))
/// Two that are numbers.
let firstNumber = LocalID.makeNumber(random: 0)
let secondNumber = LocalID.makeNumber(random: 5)
let origin = OriginAddress(scheme: .https, host: "api.example.com")

func post(_ target: String = "/v1/notes", type: String? = nil, fields: HTTPFields = [:]) -> RequestHead {
    var fields = fields
    if let type { fields[.contentType] = type }
    return RequestHead(method: .post, origin: origin, target: target, fields: fields)
}

/// Replaces `α` and `β` by the two texts, and `ν` and `μ` by the two numbers, to keep tables readable.
func spelled(_ text: String) -> String {
    [("α", firstID), ("β", secondID), ("ν", firstNumber), ("μ", secondNumber)].reduce(text) { $0.replacing($1.0, with: $1.1.text) }
}

/// Returns the references found by the scan, as `α path:2`.
func places(_ head: RequestHead, _ body: String = "") -> [String] {
    LocalIDScan.references(head: head, body: Array(body.utf8)).map { reference in
        [("α", firstID), ("β", secondID), ("ν", firstNumber), ("μ", secondNumber)]
            .reduce("\(reference.id) \(reference.place.text)") { $0.replacing($1.1.text, with: $1.0) }
    }
}

extension HTTPField.Name {
    static func named(_ text: String) -> HTTPField.Name { HTTPField.Name(text) ?? .cookie }
}

/// SplitMix64: the same seed gives the same requests.
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
