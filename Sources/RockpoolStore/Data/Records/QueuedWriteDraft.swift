// A write as passed to the outbox (docs/outbox.md#schema).
import Crypto
import FoundationEssentials
import HTTPTypes
package import RockpoolCore

/// A write to be accepted. The store assigns its sequence.
package struct QueuedWriteDraft: Sendable {
    /// UUIDv7, public.
    package var id: String
    package var request: RequestHead
    package var body: OperationBody
    package var upstream: String
    package var entity: String?
    package var lane: String
    package var idempotencyKey: String
    /// True if the client sent the key itself: a repeated request with this key is then recognised by the listener.
    package var keyIsClients: Bool
    /// The identity's name, never the credential.
    package var principal: String?
    /// −100…100, lower goes first.
    package var priority: Int
    /// nil: at once.
    package var nextAttemptAt: Timestamp?
    package var expiresAt: Timestamp?
    /// `pending`, or `uncertain` for a forwarded write that lost its response.
    package var state = OperationState.pending
    package var reason: OperationReason?
    /// When a live attempt may have sent the write before it was queued.
    package var firstSentAt: Timestamp?
    /// The tick of that.
    package var begun: Tick?
    package var lastError: String?
    /// The path of the entity's collection, and its id there; nil where no resource is declared.
    package var collection: String?
    package var entityID: String?
    /// The id of a create's item; nil for any other write.
    package var newItem: NewItemID?
    /// The local id of a create; nil where its client has chosen the key.
    package var localID: LocalID? {
        get { newItem?.local }
        set { newItem = newValue.map { .local($0) } }
    }
    /// True if its client addresses an item that nothing shows: an open create of that client may be the one that makes it.
    package var mayAddressNewItem = false
    /// The places of unmapped local ids in the request.
    package var references: [LocalIDReference] = []
    /// Public ids of operations it waits for (`Rockpool-Depends-On`).
    package var dependsOn: [String] = []
    /// Operations of one group are sent in the order they were accepted (`Rockpool-Group`).
    package var group: String?
    /// True if it must never be squashed (`Rockpool-No-Merge`).
    package var noMerge = false
    /// True if it may be squashed with the one before it (`queue.squash`).
    package var maySquash = false
    /// `publish` of `POST /notes/17/publish`: an action is never squashed.
    package var action: String?
    /// The representation its client could have seen, kept until the operation is purged. At most 1 MiB; nil when there was none, or a
    /// larger one.
    package var base: Conflict.Side?
    /// The strong ETag of that representation, and until when own writes are part of it.
    package var baseETag: String?
    package var baseIncludes: Tick?
    /// When and from where its client got it.
    package var baseSeen: BaseSeen?
    /// The program that wrote it, and the waiting writes that this program has in front of it; nil for all of its principal.
    package var viewer: Viewer.Program?
    package var reach: Reach?
    /// Operations that its condition refers to by local ETags.
    package var conditionedOn: [Int64] = []
    /// True if it builds on the state that its client has seen: the request changes an item of a resource, and has no condition of its own.
    package var takesBase = false
    /// The share of the outbox it counts on; a write is refused when its share is used up. Nil for a person's command, which has no limit.
    package var share: OutboxShare?
    /// The most bytes of open operations of its upstream, with this one; nil: no limit of its own.
    package var upstreamLimit: ByteCount?
    /// The most bytes that wait on its telemetry route, with this one: the oldest make room. Nil for any other write.
    package var queueLimit: ByteCount?
    /// True if it may be the same write as an earlier equal one of its client (docs/outbox.md#repeats).
    package var mayRepeat = false
    /// Fingerprint of the request as received; the stored request may have local ids replaced.
    package var fingerprint: [UInt8] = []

    package init(
        id: String, request: RequestHead, body: OperationBody = .none, upstream: String, entity: String? = nil, lane: String,
        idempotencyKey: String, keyIsClients: Bool = false, principal: String? = nil, priority: Int = 0,
        nextAttemptAt: Timestamp? = nil, expiresAt: Timestamp? = nil
    ) {
        self.id = id
        self.request = request
        self.body = body
        self.upstream = upstream
        self.entity = entity
        self.lane = lane
        self.idempotencyKey = idempotencyKey
        self.keyIsClients = keyIsClients
        self.principal = principal
        self.priority = priority
        self.nextAttemptAt = nextAttemptAt
        self.expiresAt = expiresAt
        fingerprint = Self.fingerprint(request, body: body)
    }

    /// True for a write of a telemetry route.
    package var isTelemetry: Bool { Lane.isTelemetry(lane, upstream: upstream) }

    /// Its place behind every operation that was accepted, for what it would wait for.
    package func summary(now: Timestamp) -> OperationSummary {
        var summary = OperationSummary(
            sequence: .max, id: id, state: .pending, method: request.method, lane: lane, upstream: upstream, entity: entity,
            priority: priority, principal: principal, acceptedAt: now, nextAttemptAt: now)
        summary.collection = collection
        summary.order(in: lane, entity: entity, isCreate: newItem != nil, address: request.fields[.rockpoolClient])
        return summary
    }

    package static func fingerprint(_ request: RequestHead, body: OperationBody) -> [UInt8] {
        let fingerprint = WriteFingerprint(request)
        return switch body {
        case .none: fingerprint.of([UInt8]())
        case .inline(let bytes): fingerprint.of(bytes)
        case .blob(let sha256, _): fingerprint.of(hash: Digest.bytes(sha256) ?? [])
        }
    }
}

/// The SHA-256 of method, URL in its canonical spelling, type and body, each preceded by its length. Used to detect a key reused with
/// another payload, never to treat two equal writes as one (docs/outbox.md#keys).
package struct WriteFingerprint: Sendable {
    /// Of everything but the body.
    private var hash = SHA256()

    package init(_ request: RequestHead) {
        for part in [request.method.rawValue, request.url.canonicalEscapes, request.fields[.contentType] ?? ""] { add(Array(part.utf8)) }
        for name in Self.fields { if let value = request.fields[name] { add(Array("\(name.canonicalName): \(value)".utf8)) } }
    }

    /// What a COPY, a MOVE or a copy of an object does is in these fields.
    private static let fields = ["Destination", "Depth", "Overwrite", "X-Amz-Copy-Source"].compactMap { HTTPField.Name($0) }

    /// The fingerprint of a write with this body.
    package func of(_ body: [UInt8]) -> [UInt8] { of(hash: SHA256.hash(data: body).bytes) }

    /// - Parameter hash: the SHA-256 of the body.
    package func of(hash: [UInt8]) -> [UInt8] {
        var whole = self
        whole.add(hash)
        return whole.hash.finalize().bytes
    }

    private mutating func add(_ part: [UInt8]) {
        hash.update(data: Array("\(part.count):".utf8) + part)
    }
}
