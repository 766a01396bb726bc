// What folding made of a collection's response (outbox.md §1.5).

/// A collection with pending writes folded in.
package struct CollectionOutcome: Hashable, Sendable {
    /// The whole body.
    package var value: JSONValue
    /// The sequence of the last write that bears on it, for the ETag; nil when none does: then `value` is the base.
    package var last: Int64?
    /// Writes that bear on it, delivered ones included.
    package var count: Int
    /// Whether one of them has an effect that could not be computed: to be said with `Rockpool-Dirty: 1`.
    package var isDirty: Bool

    package init(value: JSONValue, last: Int64? = nil, count: Int = 0, isDirty: Bool = false) {
        self.value = value
        self.last = last
        self.count = count
        self.isDirty = isDirty
    }

    mutating func note(_ item: ItemProjection, isDirty: Bool) {
        last = max(last ?? item.last, item.last)
        count += item.count
        self.isDirty = self.isDirty || isDirty
    }
}
