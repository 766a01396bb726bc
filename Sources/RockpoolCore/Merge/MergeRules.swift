// The rules of a resource's fields, by the places they are for (contract §2 `fields`, outbox.md §1.6).

/// The rule of one place, and those of the places within it. A rule covers what lies beneath it unless a deeper one is named; `""` names
/// the whole representation, `*` the elements of a keyed array.
package struct MergeRules: Hashable, Sendable {
    /// Nil where none was named: then a person is asked.
    package private(set) var strategy: FieldStrategy?
    /// Whether the upstream alone writes what is here: its id, its version, its times.
    private(set) var isManaged = false
    private var within: [String: MergeRules] = [:]

    /// The rules of a resource. Words that are none are passed over: the configuration has refused them.
    /// - Parameters:
    ///   - always: One rule for every field instead of the resource's own.
    ///   - asksForCounters: Where theirs may hold my step of a counter already, adding it could count it twice.
    package init(_ resource: Resource, always: FieldStrategy? = nil, asksForCounters: Bool = false) {
        strategy = always
        let named = always == nil ? resource.fields : [:]
        let rules = named.compactMap { text, word in
            JSONPointer(text).flatMap { place in FieldStrategy(word).map { (place: place, strategy: $0) } }
        }
        // The outer ones first: those within inherit from them.
        for rule in rules.sorted(by: { $0.place.tokens.count < $1.place.tokens.count }) {
            set(rule.place.tokens[...]) { $0.strategy = asksForCounters && rule.strategy == .counter ? .ask : rule.strategy }
        }
        for place in RepresentationShape(resource).stamps { set(place.tokens[...]) { $0.isManaged = true } }
    }

    private init(inheriting strategy: FieldStrategy?) { self.strategy = strategy }

    /// The rules of a member, or of the elements with `*`.
    func below(_ name: String) -> MergeRules { within[name] ?? MergeRules(inheriting: strategy) }

    private mutating func set(_ path: ArraySlice<String>, _ change: (inout MergeRules) -> Void) {
        guard let name = path.first else { return change(&self) }
        within[name, default: MergeRules(inheriting: strategy)].set(path.dropFirst(), change)
    }
}
