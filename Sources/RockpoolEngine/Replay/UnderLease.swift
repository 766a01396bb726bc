// A node of a fleet that cannot renew its lease stops sending by itself, before another takes over (docs/fleet.md#leases).
import RockpoolCore
import RockpoolStore

/// Runs a transfer for operations that this node has claimed; cancels it when the lease of the claim ends, and does not begin it after that:
/// the node may have been asleep since. Without a fleet it just runs.
func underLease<Result: Sendable>(
    of data: DataStore, for sequences: [Int64], _ transfer: @escaping @Sendable () async throws(TransferFailure) -> Result
) async throws(TransferFailure) -> Result {
    guard data.fleet != nil else { return try await transfer() }
    guard let end = data.leaseEnd(of: sequences), end > .now else {
        throw TransferFailure(kind: .cancelled, sent: .no, detail: "the lease of this node has ended")
    }
    let task = Task { () async -> Swift.Result<Result, TransferFailure> in
        do throws(TransferFailure) { return .success(try await transfer()) } catch { return .failure(error) }
    }
    let watch = Task {
        while !Task.isCancelled {
            guard let end = data.leaseEnd(of: sequences), end > .now else { return task.cancel() }
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
