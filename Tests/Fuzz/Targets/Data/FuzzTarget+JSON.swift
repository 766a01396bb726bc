// JSON: a value that was parsed and written is parsed as the same value, and its places can be addressed.
import RockpoolCore

extension FuzzTarget {
    /// A text.
    static func json(_ bytes: [UInt8]) throws(BrokenProperty) {
        guard let value = try? JSONValue.parse(bytes) else { return }
        let written = value.serialized()
        guard let again = try? JSONValue.parse(written) else { throw BrokenProperty(description: "what is written can be read") }
        try hold(again == value && again.hashValue == value.hashValue, "a value is read back")
        try hold(again.serialized() == written, "a value is written in one way")
        try names(value, in: value, JSONPointer(tokens: []))
    }

    private static func names(_ value: JSONValue, in whole: JSONValue, _ place: JSONPointer) throws(BrokenProperty) {
        let again = JSONPointer(place.text)
        try hold(again.map { areSame($0, place) } ?? false, "a place is read back: \(place.text)")
        try hold(place.get(in: whole) == value, "a place is where it was found: \(place.text)")
        guard place.tokens.count < 4 else { return }
        for (name, member) in value.object ?? JSONObject() { try names(member, in: whole, JSONPointer(tokens: place.tokens + [name])) }
        for (index, element) in (value.array ?? []).prefix(4).enumerated() {
            try names(element, in: whole, JSONPointer(tokens: place.tokens + [String(index)]))
        }
    }

    private static func areSame(_ a: JSONPointer, _ b: JSONPointer) -> Bool {
        a.tokens.count == b.tokens.count && zip(a.tokens, b.tokens).allSatisfy { $0.utf8.elementsEqual($1.utf8) }
    }
}
