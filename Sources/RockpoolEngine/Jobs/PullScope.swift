// What is pulled, for whom, and what came of it (docs/outbox.md#delta-pull; docs/reference/admin-api.md#sync `POST /v1/sync/pull`).
import HTTPTypes
import RockpoolCore

/// One resource that says how its changes are asked for.
struct PullSource: Sendable {
    let upstream: Upstream
    let resource: Resource
    let shape: DeltaShape

    init(_ upstream: Upstream, _ resource: Resource, _ shape: DeltaShape) {
        self.upstream = upstream
        self.resource = resource
        self.shape = shape
    }

    /// Begins the names of its scopes.
    var name: String { "\(upstream.name)|\(resource.collection)|" }
    var every: TimeSpan { (resource.delta ?? Self.cadence).every }
    var fullEvery: TimeSpan { (resource.delta ?? Self.cadence).fullEvery }

    /// URLs below which the resource is cached: where its items are elsewhere than below the collection, both.
    var prefixes: [String] {
        let items = upstream.origin.url + resource.path(of: "").prefix { $0 != "?" }
        let collection = upstream.origin.url + resource.collection
        return items.hasPrefix(collection) ? [collection] : [collection, items]
    }

    /// Of a since-pull that names none: the defaults of `delta`.
    private static let cadence = Resource.Delta(query: "", cursor: "")
}

/// One resource as one identity sees it.
struct PullScope: Sendable {
    let source: PullSource
    /// nil: without a credential.
    let principal: String?
    /// Of every request: what it is, and the credential.
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

    /// The partitions of the cache it may write to.
    var partitions: [StoragePartition] { principal.map { [.identity($0)] } ?? StoragePartition.nobodys }
}

/// What one run of the puller did.
package struct PullReport: Hashable, Sendable {
    /// One resource for one identity.
    package struct Scope: Hashable, Sendable {
        package var upstream: String
        /// Its collection.
        package var resource: String
        /// Whether a credential was used.
        package var isPrivate: Bool
        /// Whether everything was listed.
        package var isFull = false
        package var requests = 0
        /// Entities that changed and that are gone, as the upstream told.
        package var changed = 0
        package var gone = 0
        /// Cache entries brought up to date, taken away, and left to be asked for again.
        package var written = 0
        package var removed = 0
        package var invalidated = 0
        /// Changes of entities with pending writes, kept out of the cache until those have ended.
        package var withheld = 0
        package var conflictsAhead = 0
        /// Why it ended early; then nothing is recorded and the next run begins where this one did.
        package var error: String?

        init(_ scope: PullScope) {
            upstream = scope.source.upstream.name
            resource = scope.source.resource.collection
            isPrivate = scope.principal != nil
        }

        mutating func count(_ outcome: DeltaOutcome, _ applied: PullApplication.Applied) {
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
