// What a create became at its upstream (outbox.md §1.9).

/// A local id's other end.
package struct ServerMapping: Hashable, Sendable {
    /// What the upstream calls it.
    package var id: ServerID
    /// Where it is: the item's absolute URL.
    package var url: String

    package init(id: ServerID, url: String) {
        self.id = id
        self.url = url
    }
}
