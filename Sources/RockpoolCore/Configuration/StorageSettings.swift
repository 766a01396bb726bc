// The settings of the stores (docs/storage.md#directories, docs/storage.md#limits-and-shares), their cleanup, and the categories of what
// is cached.

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

    /// The directory of the file that notes what clients were shown; nil where what is stored is encrypted, and not named in a file.
    package var sightDirectory: String? { encrypt == .off ? cacheDir : nil }

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

/// The schedule and the age limits of cleanup (docs/storage.md#cleanup).
package struct CleanupSettings: Hashable, Sendable {
    package var interval = TimeSpan.minutes(15)
    package var expiredAfter = TimeSpan.days(7)
    package var failedAfter = TimeSpan.days(30)
    /// How long a refused or parked operation of a principal with an unproved credential is kept.
    package var unprovedAfter = TimeSpan.hours(24)
    /// The percentage of free pages above which a full VACUUM runs, 0…100.
    package var vacuumWhenFreePercent = 25

    package init() {}
}

/// A category of resources, built in or defined by the user (docs/architecture.md#vocabulary, docs/caching.md#categories).
package struct CacheCategory: Hashable, Sendable, Codable {
    package var name: String
    /// The lifetime of responses without explicit freshness, on routes that name this category.
    package var ttl: TimeSpan
    /// The time after storing (or the last validation) for which an entry may be served while its upstream is unreachable.
    package var offlineWindow: TimeSpan
    /// Percent of `cache_limit` that other categories cannot take from it, 0…100.
    package var guaranteePercent: Int
    /// Percent of `cache_limit` it may use at most, 0…100.
    package var sharePercent: Int
    /// The value of its bytes relative to weight 1; a higher weight is evicted later.
    package var weight: Int
    /// Larger bodies are not stored.
    package var maxObject: ByteCount?
    /// The number of requests for a URL after which its response is stored, 1…100; 1 stores it at once.
    package var minUses: Int

    package init(
        name: String, ttl: TimeSpan = .zero, offlineWindow: TimeSpan = .forever, guaranteePercent: Int = 0,
        sharePercent: Int = 100, weight: Int = 1, maxObject: ByteCount? = nil, minUses: Int = 1
    ) {
        self.name = name
        self.ttl = ttl
        self.offlineWindow = offlineWindow
        self.guaranteePercent = guaranteePercent
        self.sharePercent = sharePercent
        self.weight = weight
        self.maxObject = maxObject
        self.minUses = minUses
    }

    /// True if only its share and the limit of the cache make it smaller: its entries are kept for offline use.
    package var isKept: Bool { name == Self.critical.name || offlineWindow == .forever }

    package static let critical = CacheCategory(name: "critical", guaranteePercent: 40, weight: 8)
    package static let important = CacheCategory(
        name: "important", ttl: .hours(1), offlineWindow: .days(30), guaranteePercent: 20, weight: 4)
    package static let assets = CacheCategory(
        name: "assets", ttl: .days(7), offlineWindow: .days(90), sharePercent: 70, weight: 1, maxObject: .mb(64))
    package static let ephemeral = CacheCategory(name: "ephemeral", offlineWindow: .hours(24), sharePercent: 5, weight: 1)
    /// The four built-in categories, overridable by the configuration.
    package static let builtIn: [CacheCategory] = [.critical, .important, .assets, .ephemeral]
}
