// The upstream identity of a created entity (docs/outbox.md#local-ids).

/// The server id and URL that a local id maps to.
package struct ServerMapping: Hashable, Sendable {
    /// The upstream's id.
    package var id: ServerID
    /// The item's absolute URL.
    package var url: String

    package init(id: ServerID, url: String) {
        self.id = id
        self.url = url
    }
}
