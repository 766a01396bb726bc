// Takes what an export has written into this outbox (docs/outbox.md#import).
import RockpoolCore
package import RockpoolStore

extension OutboxCommands {
    /// Takes in operations and publishes those that are new.
    /// - Throws: `PortableOperation.Fault`, `Problem`, `DataStoreError`. Nothing has changed then.
    package func takeIn(_ operations: [PortableOperation]) async throws -> TakenIn {
        let taken = try await problems { try await data.takeIn(operations) }
        let open = taken.operations.filter { !$0.state.hasEnded }
        notifier.adoptHosts(of: open.map { ($0.upstream, $0.request.origin) })
        for operation in open { notifier.tell(operation) }
        events.wake()
        return taken
    }
}
