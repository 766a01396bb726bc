// The unit of a pull (one resource for one principal) and its report (docs/outbox.md#delta-pull; docs/reference/admin-api.md#sync `POST
// /v1/sync/pull`).
import HTTPTypes
import RockpoolCore

/// A resource that is configured to be pulled.
struct PullSource: Sendable {
    let upstream: Upstream
    let resource: Resource
    let shape: DeltaShape

    init(_ upstream: Upstream, _ resource: Resource, _ shape: DeltaShape) {
        self.upstream = upstream
        self.resource = resource
        self.shape = shape
    }

    /// The common prefix of its scopes' names.
    var name: String { "\(upstream.name)|\(resource.collection)|" }
    var every: TimeSpan { (resource.delta ?? Self.cadence).every }
    var fullEvery: TimeSpan { (resource.delta ?? Self.cadence).fullEvery }

    /// URL prefixes of its cached entries: the collection's, and that of the items if they are not below the collection.
    var prefixes: [String] {
        let items = upstream.origin.url + resource.path(of: "").prefix { $0 != "?" }
        let collection = upstream.origin.url + resource.collection
        return items.hasPrefix(collection) ? [collection] : [collection, items]
    }

    /// The defaults of `delta`, for a resource that is pulled without it (`sync.pull`).
    private static let cadence = Resource.Delta(query: "", cursor: "")
}

/// One resource as one principal sees it.
struct PullScope: Sendable {
    let source: PullSource
    /// Nil without a credential.
    let principal: String?
    /// The fields of every request, the credential included.
    let fields: HTTPFields

    init(_ source: PullSource, principal: String? = nil, secrets: HTTPFields = [:]) {
        self.source = source
        self.principal = principal
        var fields: HTTPFields = [.accept: "application/json", .userAgent: "rockpool"]
        for field in secrets { fields.append(field) }
        self.fields = fields
    }

    var name: String { source.name + (principal ?? "") }
    var request: RequestHead { request("/") }
    func request(_ target: String) -> RequestHead {
        RequestHead(method: .get, origin: source.upstream.origin, target: target, fields: fields)
    }

    /// The cache partitions that it may write to.
    var partitions: [StoragePartition] { principal.map { [.identity($0)] } ?? StoragePartition.nobodys }
}

/// The report of one run of the puller.
package struct PullReport: Hashable, Sendable {
    /// The pull of one resource for one principal.
    package struct Scope: Hashable, Sendable {
        package var upstream: String
        /// The path of its collection.
        package var resource: String
        /// True if a credential was used.
        package var isPrivate: Bool
        /// True if the full listing was read.
        package var isFull = false
        package var requests = 0
        /// The number of entities that the upstream reported as changed, and as deleted.
        package var changed = 0
        package var gone = 0
        /// The number of cache entries that were updated, removed, and invalidated.
        package var written = 0
        package var removed = 0
        package var invalidated = 0
        /// Changes of entities with pending writes, held back until those writes have ended.
        package var withheld = 0
        package var conflictsAhead = 0
        /// The reason of an early end; the cursor then stays, and the next run repeats the pull.
        package var error: String?

        init(_ scope: PullScope) {
            upstream = scope.source.upstream.name
            resource = scope.source.resource.collection
            isPrivate = scope.principal != nil
        }

        mutating func count(_ outcome: DeltaOutcome, applied: PullApplication.Applied) {
            isFull = outcome.isFull
            requests = outcome.pages
            changed = applied.present.count
            gone = applied.gone.count
            (written, removed, invalidated) = (applied.written, applied.removed, applied.invalidated)
            (withheld, conflictsAhead) = (applied.withheld.count, applied.conflicts.count)
        }
    }

    package var scopes: [Scope] = []
}
