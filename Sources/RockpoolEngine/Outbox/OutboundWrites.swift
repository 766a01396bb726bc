// Turns operations into requests that can be sent.
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// Requests for operations, and reads of the entities that they change.
package final class OutboundWrites: Sendable {
    /// The maximum size of a base in bytes. A larger representation is not pinned, and its writes cannot be merged.
    static let baseLimit: Int64 = .mib(1)

    let data: DataStore
    let upstreams: UpstreamClient
    let renewal: CredentialRenewal
    let credentials: Credentials
    let reads: ReadPipeline
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    init(
        data: DataStore, upstreams: UpstreamClient, renewal: CredentialRenewal, credentials: Credentials, reads: ReadPipeline,
        active: ActiveConfiguration, now: @escaping @Sendable () -> Timestamp
    ) {
        self.data = data
        self.upstreams = upstreams
        self.renewal = renewal
        self.credentials = credentials
        self.reads = reads
        self.active = active
        self.now = now
    }
}

// MARK: - Preparing an operation

/// Prepares an operation for sending: replaces local ids, sets its condition and key, adds its principal's live credential
/// (docs/outbox.md#keys, docs/outbox.md#local-ids, docs/outbox.md#credentials).
extension OutboundWrites {
    func outgoing(_ operation: QueuedWrite, to upstream: Upstream) async throws(DispatchBlocked) -> OutboundWrite {
        if let kind = upstream.receiver { return try message(operation, for: kind) }
        let secrets = try await credential(of: operation, upstream: upstream)
        var (head, body) = try substituted(operation)
        let plan = active.routes.plan(for: head)
        let resource = plan.entity?.resource
        head.acceptPlain()
        await condition(&head, of: operation, resource: resource)
        (head, body) = await versioned(head, body, of: operation, resource: resource)
        for field in secrets { head.fields[values: field.name] = [] }
        for field in withServerIDs(secrets, for: head) { head.fields.append(field) }
        head.setKey(operation.idempotencyKey, isClients: operation.keyIsClients, for: upstream.idempotency)
        (head, body) = try signed(head, body, of: operation, for: upstream)
        let isFresh = ReplayContext(upstream).needsFreshConnection(for: operation, now: now())
        return OutboundWrite(head: head, body: body, resource: resource, needsFreshConnection: isFresh)
    }

    /// Signs the write anew where its upstream has the key of its signature.
    private func signed(
        _ head: RequestHead, _ body: OutboundRequest.Body, of operation: QueuedWrite, for upstream: Upstream
    ) throws(DispatchBlocked) -> (RequestHead, OutboundRequest.Body) {
        guard let rule = upstream.sign?.sigV4, let signed = SignedRequest(head), signed.scheme == .sigV4, signed.keyID == rule.keyID
        else { return (head, body) }
        var (head, body) = (head, body)
        let chunked = SigV4Signer.coversBody(head.fields) ? nil : try bytes(of: operation)
        do {
            let signer = try SigV4Signer(rule)
            if let chunked {
                // Each chunk has a signature that continues the head's: the content is sent as one.
                let content = ChunkedUpload.content(of: chunked, head.fields)
                head.fields.becomeWhole(digest: CacheStore.digest(of: content))
                body = OutboundRequest.Body(.bytes(content))
            }
            return (signer.signed(head, authority: head.origin.authority, at: now()), body)
        } catch {
            throw DispatchBlocked(
                disposition: Disposition(state: .parked, reason: .auth, countsAsAnswered: false, detail: "sign.sigv4.secret_file: \(error)")
            )
        }
    }

    /// Returns a credential's fields with the local ids in cookies replaced. A cookie that names an unmapped one is left out.
    private func withServerIDs(_ secrets: HTTPFields, for head: RequestHead) -> HTTPFields {
        guard !data.localIDs.isEmpty else { return secrets }
        var fields = HTTPFields()
        for field in secrets {
            var probe = head
            probe.fields = HTTPFields([field])
            guard field.name == .cookie, LocalIDScan.mayOccur(head: probe.withoutTarget, body: []) else {
                fields.append(field)
                continue
            }
            let pairs = field.value.split(separator: ";").compactMap { pair -> String? in
                probe.fields = [.cookie: String(pair.drop { $0 == " " })]
                return (try? data.localIDs.substituted(probe.withoutTarget, []))?.head.fields[.cookie]
            }
            if !pairs.isEmpty { fields.append(HTTPField(name: .cookie, value: pairs.joined(separator: "; "))) }
        }
        return fields
    }

    func credential(
        of operation: QueuedWrite, upstream: Upstream
    ) async throws(DispatchBlocked) -> HTTPFields {
        // A request that is signed by itself carries its own signature.
        guard let principal = operation.principal, SignedRequest(operation.request)?.isOfOneRequest != true else { return [:] }
        guard let secrets = await renewal.secrets(of: principal, upstream: upstream) else {
            throw DispatchBlocked(
                disposition: Disposition(
                    state: .parked, reason: .auth, countsAsAnswered: false, detail: "its identity has shown no live credential"))
        }
        guard let name = operation.request.fields[.rockpoolCredential] else { return secrets }
        // Cookies are those it came with, not those of another request of the same identity.
        let own = credentials.beside(name)
        return HTTPFields(secrets.filter { !own.contains($0.name) } + Array(own))
    }

    /// Replaces every local id by its server id. Fails when one is unmapped, so that no byte of a local id reaches an upstream (P5).
    func substituted(_ operation: QueuedWrite) throws(DispatchBlocked) -> (RequestHead, OutboundRequest.Body) {
        let content: OperationContent
        do { content = try data.content(of: operation.body) } catch { throw DispatchBlocked(unreadable: error, now: now()) }
        guard !data.localIDs.isEmpty else { return (operation.request, OutboundRequest.Body(content)) }
        let bytes = try bytes(of: operation)
        guard LocalIDScan.mayOccur(head: operation.request, body: bytes) else {
            return (operation.request, OutboundRequest.Body(content))
        }
        do {
            let (head, replaced) = try data.localIDs.substituted(operation.request, bytes)
            return (head, OutboundRequest.Body(.bytes(replaced)))
        } catch {
            let ids = error.ids.map(\.text).joined(separator: ", ")
            throw DispatchBlocked(
                disposition: Disposition(
                    state: .dead, reason: .unmapped, countsAsAnswered: false, detail: "its upstream has no id for \(ids)"))
        }
    }

    /// Returns the stored body. - Throws: the reason why it cannot be read; it is never taken for empty.
    func bytes(of operation: QueuedWrite) throws(DispatchBlocked) -> [UInt8] {
        do { return try data.content(of: operation.body).bytes() } catch { throw DispatchBlocked(unreadable: error, now: now()) }
    }

    /// Replaces local ETags by the ETags that the earlier operations received. Where the client sent no condition, the base's ETag becomes
    /// one.
    func condition(_ head: inout RequestHead, of operation: QueuedWrite, resource: Resource?) async {
        // If one tag names an operation that this one neither needs nor builds on, all tags stay unchanged.
        let named = head.fields.localETags
        if !named.isEmpty, named.allSatisfy({ operation.needs.contains($0.sequence) || operation.baseSequence == $0.sequence }) {
            var real: [Int64: String] = [:]
            // If the parent was rewritten by conflict resolution, keep the old base ETag: the upstream answers 412 and the write is merged.
            let stands = operation.baseSequence != nil
            for tag in named where stands { real[tag.sequence] = try? await data.etag(of: tag.sequence) }
            if stands, await isUnversioned(named.map(\.sequence)) {
                // The upstream has named no version in its answer: a read just before the write supplies the condition.
                head.fields[.ifMatch] = nil
                return
            }
            head.fields = head.fields.replacingLocalETags { tag in real[tag.sequence].flatMap { EntityTag($0) } ?? tag.base }
        }
        guard let base = operation.baseETag, head.takesBase(resource) || operation.asksForCondition else { return }
        guard !head.isConditional else { return }
        head.fields[.ifMatch] = base
    }

    /// Replaces local versions in a body by those that the earlier operations received.
    func versioned(
        _ head: RequestHead, _ body: OutboundRequest.Body, of operation: QueuedWrite, resource: Resource?
    ) async -> (RequestHead, OutboundRequest.Body) {
        guard let resource, let bytes = body.inMemory else { return (head, body) }
        let versions = LocalVersions(resource)
        if let followed = await following(operation, bytes, versions) {
            var head = head
            head.fields = head.fields.ofReplacedBody
            return (head, .bytes(ByteBuffer(bytes: followed)))
        }
        let tags = versions.tags(in: bytes)
        guard !tags.isEmpty else { return (head, body) }
        let named = tags.map(\.sequence).filter { operation.needs.contains($0) || operation.baseSequence == $0 }
        let earlier = operation.baseSequence == nil ? [] : (try? await data.operations(sequences: named)) ?? []
        let real = Dictionary(
            earlier.compactMap { write in write.version(of: resource).map { (write.sequence, $0) } },
            uniquingKeysWith: { first, _ in first })
        let replaced = versions.replaced(in: bytes) { tag in
            named.contains(tag.sequence) ? real[tag.sequence] ?? tag.base.map { String($0.bare) } : nil
        }
        guard replaced != bytes else { return (head, body) }
        var head = head
        head.fields = head.fields.ofReplacedBody
        return (head, .bytes(ByteBuffer(bytes: replaced)))
    }

    /// Returns the body of an operation that builds on an earlier one, if it names the version that its client saw before that: it means the
    /// version which the earlier one has made. Versions that are numbers cannot name a local state.
    private func following(_ operation: QueuedWrite, _ body: [UInt8], _ versions: LocalVersions) async -> [UInt8]? {
        guard let sequence = operation.baseSequence, let named = versions.value(in: body), named.string == nil,
            let base = try? await data.base(of: operation.sequence), versions.value(in: base.body) == named,
            let earlier = try? await data.operations(sequences: [sequence]).first,
            let made = earlier.answeredRepresentation.flatMap({ versions.value(in: $0.body) }), made != named
        else { return nil }
        return versions.with(made, in: body)
    }

    /// True if one of these operations was delivered, and its answer had no strong ETag.
    private func isUnversioned(_ sequences: [Int64]) async -> Bool {
        let earlier = (try? await data.operations(sequences: sequences)) ?? []
        return earlier.contains { operation in
            operation.state == .delivered && EntityTag.condition(in: operation.result?.head.fields[.eTag]) == nil
        }
    }

    // MARK: - The upstream's state

    // Reads the upstream's current state of an entity: before a conflict is decided, and before a write that carries no condition
    // (docs/outbox.md#detection).

    /// - Throws: `DispatchBlocked` where a local id is unmapped, or the body cannot be read.
    func bare(_ operation: QueuedWrite) async throws(DispatchBlocked) -> ReplayRequest {
        var (head, body) = try substituted(operation)
        let declared = active.routes.plan(for: head).entity?.resource
        await condition(&head, of: operation, resource: declared)
        (head, body) = await versioned(head, body, of: operation, resource: declared)
        if let upstream = active.routes.upstream(named: operation.upstream) { head.fields[upstream.idempotency.name] = nil }
        let content: [UInt8]
        if let bytes = body.inMemory { content = bytes } else { content = try bytes(of: operation) }
        return ReplayRequest(head: head, body: content, resource: declared ?? Resource(assumedFor: head))
    }

    /// Reads the entity with the operation's own credential.
    /// - Parameter path: the entity's path; nil where it is unknown.
    func look(at path: String?, of operation: QueuedWrite, like head: RequestHead, upstream: Upstream) async -> EntityRead {
        guard upstreams.isReachable(upstream) else {
            return .failed(TransferFailure(kind: .unavailable, sent: .no, detail: "\(upstream.name) is not reachable"))
        }
        guard let path, let secrets = try? await credential(of: operation, upstream: upstream) else { return .refused(status: 401) }
        var question = head.look
        question.target = path
        question.fields[upstream.idempotency.name] = nil
        for field in secrets { question.fields[values: field.name] = [] }
        for field in secrets { question.fields.append(field) }
        do throws(TransferFailure) {
            let answer = try await upstreams.send(question, body: .none, upstream: upstream)
            let skew = answer.head.fields[.date].flatMap { HTTPDate.parse($0) }.map { clockSkew(at: $0) } ?? .zero
            guard answer.head.status == 200 else {
                _ = try? await answer.body.collect(upTo: Int(OutboundWrites.baseLimit))
                return [404, 410].contains(answer.head.status) ? .shown(.gone, skew: skew) : .refused(status: answer.head.status)
            }
            // A body that breaks off is no state of the entity.
            let read = try await answer.body.collect(upTo: Int(OutboundWrites.baseLimit))
            guard read.isWhole else { return .refused(status: 200) }
            let side = Conflict.Side(
                body: Array(read.bytes.readableBytesView), contentType: answer.head.fields[.contentType], etag: answer.head.fields[.eTag])
            return .shown(.present(side, answer.head), skew: skew)
        } catch {
            return .failed(error)
        }
    }

    /// `Date` has a resolution of one second (RFC 9110 §5.6.7), so a local clock less than a second ahead of it counts as equal.
    private func clockSkew(at date: Timestamp) -> TimeSpan {
        let skew = date - now()
        return skew <= .zero && skew > .seconds(-1) ? .zero : skew
    }

    /// Returns the path of the entity in conflict: the operation's own path or, for a refused create, the path that the refusal names.
    func entityPath(of operation: QueuedWrite, bare: ReplayRequest) -> String? {
        guard bare.head.method == .post, let entity = active.routes.plan(for: bare.head).entity, !entity.isItem else {
            return active.routes.plan(for: bare.head).entity?.target ?? bare.head.path
        }
        guard let refusal = operation.result else { return nil }
        return ServerID.inAnswer(refusal.head, json: try? JSONValue.parse(refusal.body), to: bare.head, resource: bare.resource)
            .flatMap { try? RequestHead(url: $0.url).target }
    }
}

extension RequestHead {
    /// The fields alone.
    fileprivate var withoutTarget: RequestHead { RequestHead(method: method, origin: origin, target: "/", fields: fields) }

    /// True if the base's ETag becomes its condition: the request changes a representation whose versions are entity tags
    /// (docs/reference/behaviour.md#conditions).
    func takesBase(_ resource: Resource?) -> Bool { (resource?.version ?? "etag") == "etag" && buildsOnState }

    /// True if the request changes the representation at its target without a condition of its own.
    var buildsOnState: Bool { !isConditional && changesState }

    /// True if the method changes the representation at the target.
    var changesState: Bool { method == .put || method == .patch || method == .delete }

    /// True if the client sent a condition of its own.
    var isConditional: Bool {
        fields.contains(.ifMatch) || fields.contains(.ifNoneMatch) || fields.contains(.ifUnmodifiedSince)
    }
}

extension QueuedWrite {
    /// The version that the upstream's answer to a delivered write names, in its body or by its ETag; nil without one.
    fileprivate func version(of resource: Resource) -> String? {
        guard state == .delivered, let result else { return nil }
        let declared = answeredRepresentation.flatMap { LocalVersions(resource).version(in: $0.body) }
        return declared ?? result.head.fields[.eTag].flatMap { EntityTag($0) }.map { String($0.bare) }
    }

    /// True if the upstream answered 428, which requires a condition (RFC 6585 §3).
    fileprivate var asksForCondition: Bool { lastError?.hasPrefix("428") ?? false }
}

extension Resource {
    /// Assumes a resource for an undeclared path: the path is the item's, and every conflict waits for a person.
    fileprivate init(assumedFor head: RequestHead) {
        let collection = head.path.split(separator: "/").dropLast().map { "/" + $0 }.joined()
        self.init(collection: collection.isEmpty ? "/" : collection, item: collection + "/{id}", conflict: .ask)
    }
}

// MARK: - Results

/// A request that is ready to be sent.
struct OutboundWrite: Sendable {
    var head: RequestHead
    var body: OutboundRequest.Body
    var resource: Resource?
    var needsFreshConnection: Bool
}

/// An operation as its upstream would receive it, without credential and key.
struct ReplayRequest: Sendable {
    var head: RequestHead
    var body: [UInt8]
    var resource: Resource
}

/// The result of reading an entity from the upstream (docs/outbox.md#detection).
enum EntityRead: Sendable {
    /// - Parameter skew: the upstream's clock minus the proxy's clock.
    case shown(ConflictCase.Theirs, skew: TimeSpan)
    /// The upstream answered without the entity's state, for example with 401, 405 or 500.
    case refused(status: Int)
    case failed(TransferFailure)

    /// True if a refusal may pass: a failure, a limited rate, or a body that broke off.
    static func mayPass(_ status: Int) -> Bool { status >= 500 || status == 429 || status == 200 }
}

/// The reason why an operation cannot be sent in its current form; no byte of it was sent.
struct DispatchBlocked: Error {
    var disposition: Disposition

    init(disposition: Disposition) { self.disposition = disposition }

    /// The body cannot be read: for good if it is damaged, else for now.
    init(unreadable error: any Error, now: Timestamp) {
        disposition =
            error is DamagedBody
            ? Disposition(state: .dead, reason: .damaged, countsAsAnswered: false, detail: "\(error)")
            : Disposition(state: .pending, nextAttemptAt: now + .seconds(5), countsAsAnswered: false, detail: "its body: \(error)")
    }
}
