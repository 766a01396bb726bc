// A node of a fleet that cannot renew its lease stops sending by itself, before another takes over (docs/fleet.md#leases).
import RockpoolCore
import RockpoolStore

/// Runs a transfer; cancels it when the lease of this node ends. Without a fleet it just runs.
func underLease<Result: Sendable>(
    of data: DataStore, _ transfer: @escaping @Sendable () async throws(TransferFailure) -> Result
) async throws(TransferFailure) -> Result {
    guard data.fleet != nil else { return try await transfer() }
    let task = Task { () async -> Swift.Result<Result, TransferFailure> in
        do throws(TransferFailure) { return .success(try await transfer()) } catch { return .failure(error) }
    }
    let watch = Task {
        while !Task.isCancelled {
            guard let end = data.leaseEnd, end > .now else { return task.cancel() }
            try await Task.sleep(until: min(end, .now + .milliseconds(500)), clock: .continuous)
        }
    }
    defer { watch.cancel() }
    return try await withTaskCancellationHandler {
        await task.value
    } onCancel: {
        task.cancel()
    }.get()
}
