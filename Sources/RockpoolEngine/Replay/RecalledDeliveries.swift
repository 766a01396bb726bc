// The last deliveries before the start: a crash may have come between the commit of a delivery and its effect on the copies, which are in
// another database (docs/outbox.md#effects).
import Logging
import RockpoolCore
import RockpoolStore

/// Repeats the effects of the last deliveries on cached copies, where a crash may have prevented them.
package struct RecalledDeliveries: Sendable {
    /// The time before the last delivery in which copies of others may have been kept valid.
    private static let invalidationSpan = TimeSpan.minutes(1)
    /// The longest time between the commit of a delivery and its effect on the copies.
    private static let effectSpan = TimeSpan.seconds(5)

    let data: DataStore
    let outbound: OutboundWrites
    let updates: EntryUpdates
    let effects: OwnWriteEffects
    let logger: Logger

    /// Invalidates the copies that were requested before the last deliveries and that these have changed, and works the deliveries that no copy shows into the copies of their
    /// clients. Call it before the first read is served. Failures are logged.
    package func project() async {
        do {
            let last = try await data.lastDelivered(within: Self.invalidationSpan)
            for operation in last {
                if let answer = operation.result?.head {
                    await updates.invalidate(after: answer, to: operation.request, at: operation.ended)
                }
            }
            let end = last.compactMap(\.endedAt).max() ?? .distantPast
            let late = last.filter { ($0.endedAt ?? .distantPast) >= end - Self.effectSpan }
            let whole = try await data.operations(sequences: late.map(\.sequence))
            let deliveries = DeliveryEffects(data: data, outbound: outbound, effects: effects)
            for operation in whole.byEnd { await deliveries.note(operation) }
        } catch {
            logger.failed("the last deliveries cannot be read", error: error)
        }
    }
}
