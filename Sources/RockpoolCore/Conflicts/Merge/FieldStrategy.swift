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
