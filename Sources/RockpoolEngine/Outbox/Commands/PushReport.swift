// The report of a push (docs/reference/admin-api.md#sync `POST /v1/sync/push`).
package import RockpoolCore

/// The result of a push.
package struct PushReport: Hashable, Sendable {
    /// Operations that were made due.
    package var flushed = 0
    /// Operations delivered during the push.
    package var delivered = 0
    /// Operations that wait because their upstream demands so, by upstream.
    package var held: [RetryHold] = []
    /// The open operations by state at the end.
    package var open: [OperationState: Int] = [:]
}
