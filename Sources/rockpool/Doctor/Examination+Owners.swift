// Checks that the owners of queued writes can be known (docs/storage.md#directories).
import RockpoolCore
import RockpoolStore

extension Examination {
    /// Queued writes whose owners were named under an `install-key` that is gone.
    func owners() async -> [Finding] {
        if let server, !server.isOwn { return [] }
        let directory = configuration.storage.stateDir
        let count = (try? await DataStore.writesOfLostOwners(in: directory, isRunning: server != nil)) ?? 0
        guard count > 0 else { return [] }
        return [
            .fail(
                "install-key",
                detail: "\(directory)/install-key was made anew: "
                    + count.counted("queued write waits", "queued writes wait") + " for ever, because it cannot name the owner",
                advice: "stop the server, restore the former file, start it; or give the writes up: rockpool outbox discard ID")
        ]
    }
}
