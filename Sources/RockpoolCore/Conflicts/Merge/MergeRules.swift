// The merge rules of a resource's fields, as a tree by place (docs/reference/behaviour.md#conflicts `fields`, docs/outbox.md#fields).

/// The rule of one place, and those of the places within it. A rule covers everything below it unless a deeper rule is configured; `""` is
/// the whole representation, `*` the elements of a keyed array.
package struct MergeRules: Hashable, Sendable {
    /// Nil where no rule was configured: then a person decides.
    package private(set) var strategy: FieldStrategy?
    /// True if only the upstream writes this place: its id, its version, its times.
    private(set) var isManaged = false
    private var within: [String: MergeRules] = [:]

    /// Reads the rules of a resource. Unknown words are ignored, because the configuration has rejected them.
    /// - Parameters:
    ///   - always: One rule for every field instead of the resource's own.
    ///   - asksForCounters: Theirs may include my change of a counter already, and adding it could count it twice, so a person decides.
    package init(_ resource: Resource, always: FieldStrategy? = nil, asksForCounters: Bool = false) {
        strategy = always
        let named = always == nil ? resource.fields : [:]
        let rules = named.compactMap { text, word in
            JSONPointer(text).flatMap { place in FieldStrategy(word).map { (place: place, strategy: $0) } }
        }
        // Outer rules first, because inner ones inherit from them.
        for rule in rules.sorted(by: { $0.place.tokens.count < $1.place.tokens.count }) {
            set(rule.place.tokens[...]) { $0.strategy = asksForCounters && rule.strategy == .counter ? .ask : rule.strategy }
        }
        for place in RepresentationShape(resource).stamps { set(place.tokens[...]) { $0.isManaged = true } }
    }

    private init(inheriting strategy: FieldStrategy?) { self.strategy = strategy }

    /// Returns the rules of a member, or of the elements with `*`.
    func below(_ name: String) -> MergeRules { within[name] ?? MergeRules(inheriting: strategy) }

    private mutating func set(_ path: ArraySlice<String>, _ change: (inout MergeRules) -> Void) {
        guard let name = path.first else { return change(&self) }
        within[name, default: MergeRules(inheriting: strategy)].set(path.dropFirst(), change)
    }
}
