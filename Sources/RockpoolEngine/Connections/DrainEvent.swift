// The event that ends connections at shutdown (docs/security-model.md#connections).

/// The server is stopping: the connection finishes its current exchange and accepts no new one.
package struct DrainEvent: Sendable {
    package init() {}
}
