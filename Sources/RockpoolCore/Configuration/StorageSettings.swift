// The settings of the stores (docs/storage.md#directories, docs/storage.md#limits-and-shares).

/// Storage locations and their limits (docs/storage.md#directories, docs/storage.md#limits-and-shares).
package struct StorageSettings: Hashable, Sendable {
    package var cacheDir = "~/.cache/rockpool"
    package var stateDir = "~/.local/state/rockpool"
    package var cacheLimit = ByteCount.mb(500)
    package var dataLimit = ByteCount.mb(200)
    /// Free space of the file system below which nothing is stored.
    package var minFree = ByteCount.mb(256)
    package var memoryLimit = ByteCount.mb(64)
    /// The share of `cacheLimit` for all pinned bytes together, 0…100.
    package var pinCapPercent = 25
    /// The share of `dataLimit` for the open operations of one principal, 0…100.
    package var principalSharePercent = 50
    /// The share of `dataLimit` for the open operations of all principals without a credential accepted by an upstream, together, 0…100.
    package var unprovedSharePercent = 12
    /// Which bodies are sealed at rest.
    package var encrypt = StorageEncryption.off
    /// A file with the secret that seals them; nil: this installation's own.
    package var keyFile: String?

    package init() {}
}

/// Which bodies lie sealed on the disk.
package enum StorageEncryption: String, CaseIterable, Hashable, Sendable {
    case off
    /// Queued bodies, their answers and conflict sides, and cached bodies that belong to one principal.
    case `private`
}
