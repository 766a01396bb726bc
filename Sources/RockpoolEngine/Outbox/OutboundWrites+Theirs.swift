// Reads the upstream's current state of an entity: before a conflict is decided, and before a write that carries no condition
// (docs/outbox.md#detection).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension OutboundWrites {
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

extension Resource {
    /// Assumes a resource for an undeclared path: the path is the item's, and every conflict waits for a person.
    fileprivate init(assumedFor head: RequestHead) {
        let collection = head.path.split(separator: "/").dropLast().map { "/" + $0 }.joined()
        self.init(collection: collection.isEmpty ? "/" : collection, item: collection + "/{id}", conflict: .ask)
    }
}
