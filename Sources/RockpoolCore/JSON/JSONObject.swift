// The members of a JSON object, in the order they were written (RFC 8259 §4).
import OrderedCollections

/// An object's members: looked up by name, walked in their order, compared without it.
package struct JSONObject: Sendable {
    private var members: OrderedDictionary<Name, JSONValue> = [:]

    package init() {}

    /// The last of members with one name stays, in the place of the first.
    package init(_ members: some Sequence<(String, JSONValue)>) {
        for (name, value) in members { self[name] = value }
    }

    /// Members.
    package var count: Int { members.count }
    /// Whether it has no members.
    package var isEmpty: Bool { members.isEmpty }
    /// Of its members, in their order.
    package var names: [String] { members.keys.map(\.text) }

    /// Setting an existing member keeps its place, a new one goes last, nil removes.
    package subscript(name: String) -> JSONValue? {
        get { members[Name(text: name)] }
        set { members[Name(text: name)] = newValue }
    }

    /// Names are equal when their code units are (RFC 8259 §8.3); Swift's strings compare by canonical equivalence.
    private struct Name: Hashable, Sendable {
        let text: String

        static func == (a: Self, b: Self) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }
        func hash(into hasher: inout Hasher) { hasher.combine(text) }
    }
}

extension JSONObject: Sequence {
    /// Walks the members in their order.
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
        // Order must not show: members are hashed apart and summed.
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
