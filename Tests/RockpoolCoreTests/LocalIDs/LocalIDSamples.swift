// What the tests of local ids share: three ids, requests, and random numbers that repeat.
import HTTPTypes
import RockpoolCore

let firstID = LocalID.make(now: noon, random: (1, 2))
let secondID = LocalID.make(now: noon, random: (3, 4))
let origin = OriginAddress(scheme: .https, host: "api.example.com")

func post(_ target: String = "/v1/notes", type: String? = nil, fields: HTTPFields = [:]) -> RequestHead {
    var fields = fields
    if let type { fields[.contentType] = type }
    return RequestHead(method: .post, origin: origin, target: target, fields: fields)
}

/// `α` and `β` stand for the two ids, so that tables can be read.
func spelled(_ text: String) -> String { text.replacing("α", with: firstID.text).replacing("β", with: secondID.text) }

/// What the scan finds, as `α path:2`.
func places(_ head: RequestHead, _ body: String = "") -> [String] {
    LocalIDScan.references(head: head, body: Array(body.utf8)).map { reference in
        "\(reference.id) \(reference.place.text)".replacing(firstID.text, with: "α").replacing(secondID.text, with: "β")
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
