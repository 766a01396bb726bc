// The unit of a pull (one resource for one principal) and its report (docs/outbox.md#delta-pull; docs/reference/admin-api.md#sync `POST
// /v1/sync/pull`).
import HTTPTypes
import RockpoolCore

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
