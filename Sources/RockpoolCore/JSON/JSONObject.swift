// The members of a JSON object in their original order (RFC 8259 §4).
import OrderedCollections

/// An object's members: accessible by name, iterated in order, compared without regard to order.
package struct JSONObject: Sendable {
    private var members: OrderedDictionary<Name, JSONValue> = [:]

    package init() {}

    /// Of members with the same name, the value of the last is kept at the position of the first.
    package init(_ members: some Sequence<(String, JSONValue)>) {
        for (name, value) in members { self[name] = value }
    }

    /// The number of members.
    package var count: Int { members.count }
    /// True if the object has no members.
    package var isEmpty: Bool { members.isEmpty }
    /// The members' names, in order.
    package var names: [String] { members.keys.map(\.text) }

    /// Setting an existing member keeps its position, a new member is appended, and nil removes.
    package subscript(name: String) -> JSONValue? {
        get { members[Name(text: name)] }
        set { members[Name(text: name)] = newValue }
    }

    /// Names are equal if their code units are (RFC 8259 §8.3); Swift's strings compare by canonical equivalence.
    private struct Name: Hashable, Sendable {
        let text: String

        static func == (a: Self, b: Self) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }
        func hash(into hasher: inout Hasher) { hasher.combine(text) }
    }
}

extension JSONObject: Sequence {
    /// Iterates over the members in order.
    package func makeIterator() -> AnyIterator<(name: String, value: JSONValue)> {
        var base = members.makeIterator()
        return AnyIterator { base.next().map { ($0.key.text, $0.value) } }
    }
}

extension JSONObject: Hashable {
    package static func == (a: Self, b: Self) -> Bool {
        a.count == b.count && a.members.allSatisfy { b.members[$0.key] == $0.value }
    }

    package func hash(into hasher: inout Hasher) {
        // The hash must not depend on the order: members are hashed separately and summed.
        var sum = 0
        for (name, value) in members {
            var own = Hasher()
            own.combine(name)
            own.combine(value)
            sum &+= own.finalize()
        }
        hasher.combine(sum)
    }
}
