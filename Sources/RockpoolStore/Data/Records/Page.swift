// A page of a list.

/// One page of a list.
package struct Page<Item: Sendable>: Sendable {
    package var items: [Item]
    /// The cursor of the next page; nil at the end.
    package var next: Int64?
}
