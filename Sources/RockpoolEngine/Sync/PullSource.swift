// A resource that is pulled (docs/outbox.md#delta-pull).
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
        let items = upstream.origin.url + resource.itemPrefix
        let collection = upstream.origin.url + resource.collection
        return items.hasPrefix(collection) ? [collection] : [collection, items]
    }

    /// The defaults of `delta`, for a resource that is pulled without it (`sync.pull`).
    private static let cadence = Resource.Delta(query: "", cursor: "")
}
