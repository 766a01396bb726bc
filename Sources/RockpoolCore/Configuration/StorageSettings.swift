// The settings of the stores (docs/storage.md#directories, docs/storage.md#limits-and-shares).

/// Storage locations and their limits (docs/storage.md#directories, docs/storage.md#limits-and-shares).
package struct StorageSettings: Hashable, Sendable {
    package var cacheDir = "~/.cache/rockpool"
    package var stateDir = "~/.local/state/rockpool"
    /// One number for both directories; nil: each has its own.
    package var limit: ByteCount?
    package var cacheBound = StorageBound.size(.mb(500))
    package var dataBound = StorageBound.size(.mb(200))
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

    /// Returns these settings with the limits and shares of others, which a running server takes.
    package func taking(limitsOf other: StorageSettings) -> StorageSettings {
        var settings = self
        (settings.limit, settings.cacheBound, settings.dataBound) = (other.limit, other.cacheBound, other.dataBound)
        (settings.minFree, settings.pinCapPercent) = (other.minFree, other.pinCapPercent)
        (settings.principalSharePercent, settings.unprovedSharePercent) = (other.principalSharePercent, other.unprovedSharePercent)
        return settings
    }

    /// The limit of the cache directory.
    package var cacheLimit: ByteCount {
        get { cacheBound.bytes(of: limit) }
        set { cacheBound = .size(newValue) }
    }

    /// The limit of the state directory.
    package var dataLimit: ByteCount {
        get { dataBound.bytes(of: limit) }
        set { dataBound = .size(newValue) }
    }
}

/// The limit of a directory.
package enum StorageBound: Hashable, Sendable {
    /// The shares of `storage.limit` where only that is given.
    package static let (cacheShare, dataShare) = (StorageBound.share(70), StorageBound.share(30))

    case size(ByteCount)
    /// A part of `storage.limit` in percent.
    case share(Int)

    func bytes(of limit: ByteCount?) -> ByteCount {
        switch self {
        case .size(let size): size
        case .share(let percent): ByteCount((limit ?? .zero).bytes.percent(percent))
        }
    }
}

/// Which bodies lie sealed on the disk.
package enum StorageEncryption: String, CaseIterable, Hashable, Sendable {
    case off
    /// Queued bodies, their answers and conflict sides, and cached bodies that belong to one principal.
    case `private`
}
