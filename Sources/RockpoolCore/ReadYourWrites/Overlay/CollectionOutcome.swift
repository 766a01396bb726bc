// The result of folding writes into a collection's response (docs/outbox.md#reads).

/// A collection with pending writes folded in.
package struct CollectionOutcome: Hashable, Sendable {
    /// The whole body.
    package var value: JSONValue
    /// The sequence of the last write that affects the collection, for the ETag; nil when there is none and `value` is the base.
    package var last: Int64?
    /// The number of writes that affect the collection, delivered ones included.
    package var count: Int
    /// True if one of them has an effect that could not be computed; sent as `Rockpool-Dirty: 1`.
    package var isDirty: Bool
    /// The number of items more than in the base; negative for fewer.
    package var growth = 0

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
