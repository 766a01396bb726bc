// The result of a command on an operation.
package import RockpoolCore

/// The result of an accepted command.
package struct OutboxCommandResult: Sendable {
    /// The operation in its new state; after an edit, the new operation.
    package var operation: QueuedWrite
    /// A warning when an earlier attempt may have taken effect (P13).
    package var warning: String?
}
