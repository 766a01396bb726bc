// Routes the requests of a GraphQL endpoint by their operation: a query is a read with a key, anything else a write
// (docs/reference/configuration.md#routes, `kind: graphql`).
import HTTPTypes
import NIOCore
import OrderedCollections
import RockpoolCore
import RockpoolStore
import Synchronization

/// Decides about the requests of routes with `kind: graphql`, and remembers the documents that clients have named by a hash.
final class GraphQLRouting: Sendable {
    /// The longest request that is read; a longer one is passed through.
    private static let limit = ByteCount.mib(1)
    private static let documentLimit = 1024

    /// Documents by their hash, as clients have sent them.
    private let documents = Mutex<OrderedDictionary<String, (kind: GraphQLOperation, text: String)>>([:])

    /// Reads the request's body and completes the plan.
    /// - Parameter isReachable: False if no request may be sent. A query that is named by a hash may then be answered from the store.
    /// - Returns: The body and its key if the request is a query; nil if it is a write, which `exchange` then carries.
    /// - Throws: The failure that interrupted the body.
    func route(
        _ exchange: inout Exchange, plan: inout RoutePlan, routes: RouteTable, isReachable: Bool
    ) async throws(TransferFailure) -> KeyingBody? {
        guard exchange.request.method == .post, !plan.isWrite else { return nil }
        guard var bytes = try await Self.whole(exchange) else {
            plan = Self.write(exchange, routes: routes, isQueueable: false)
            return nil
        }
        let request = GraphQLRequest(body: Array(bytes.readableBytesView))
        let kind = request.map(known) ?? (GraphQLOperation.of(body: Array(bytes.readableBytesView)) == .query ? .query : .unknown)
        if kind == .query || kind == .unknown && !isReachable && request != nil {
            // The store holds queries only, so that what is found under the hash is one.
            if kind == .unknown { plan.store = .never }
            return request.map { KeyingBody(bytes, of: $0) }
                ?? KeyingBody(bytes: bytes, digest: CacheStore.digest(of: Array(bytes.readableBytesView)))
        }
        plan = Self.write(exchange, routes: routes, isQueueable: kind == .mutation)
        if let request, kind == .mutation {
            bytes = completed(bytes, of: request)
            if let value = plan.route?.lane.flatMap({ JSONPointer($0) }).flatMap(request.variable) {
                plan.entity = EntityMatch(path: "\(exchange.request.path)#\(value)", isItem: true)
            }
        }
        (exchange.body, exchange.bodyLength) = (BodyPipe(whole: bytes), Int64(bytes.readableBytes))
        return nil
    }

    private static func write(_ exchange: Exchange, routes: RouteTable, isQueueable: Bool) -> RoutePlan {
        var plan = routes.plan(for: exchange.request, isWrite: true)
        plan.queueable = plan.queueable && isQueueable
        return plan
    }

    /// Returns the whole body; nil if it is too long. Then it can still be read.
    private static func whole(_ exchange: Exchange) async throws(TransferFailure) -> ByteBuffer? {
        guard exchange.body != nil else { return ByteBuffer() }
        if let length = exchange.bodyLength, length > limit.bytes { return nil }
        return try await exchange.collected(upTo: Int(limit.bytes))
    }

    /// Returns the kind of a request, and remembers its document.
    private func known(_ request: GraphQLRequest) -> GraphQLOperation {
        guard let document = request.document else {
            return documents.withLock { $0[request.hash ?? ""]?.kind } ?? .unknown
        }
        guard request.kind != .unknown, request.hash != nil else { return request.kind }
        let hash = CacheStore.digest(of: Array(document.utf8))
        documents.withLock { documents in
            documents[hash] = (request.kind, document)
            if documents.count > Self.documentLimit { documents.removeFirst() }
        }
        return request.kind
    }

    /// Adds the document to a mutation that names only its hash, because the server may have forgotten it when the mutation is sent.
    private func completed(_ bytes: ByteBuffer, of request: GraphQLRequest) -> ByteBuffer {
        guard request.document == nil, let hash = request.hash, let document = documents.withLock({ $0[hash]?.text }),
            var body = try? JSONValue.parse(Array(bytes.readableBytesView))
        else { return bytes }
        body["query"] = .string(document)
        return ByteBuffer(bytes: body.serialized())
    }
}

// MARK: - Responses

/// Examines the responses of GraphQL endpoints, whose errors arrive with status 200 (docs/outbox.md#graphql).
extension ReadPipeline {
    /// The longest response that is read to find its errors.
    private static let examinedLimit = ByteCount.mib(4)

    /// Keeps a response with errors from being stored: it must not replace a good one, nor answer a later request.
    func examined(_ reply: OriginReply, for context: inout RequestContext) async -> OriginReply {
        guard (200...299).contains(reply.head.status), MediaType.isJSON(reply.head.fields) else { return reply }
        var reply = reply
        var bytes = ByteBuffer()
        do throws(TransferFailure) {
            while var chunk = try await reply.body.next() {
                bytes.writeBuffer(&chunk)
                guard Int64(bytes.readableBytes) <= Self.examinedLimit.bytes else {
                    reply.body = BodyPipe(bytes, then: reply.body)
                    return reply
                }
            }
        } catch {
            let broken = BodyPipe()
            broken.offer(bytes)
            broken.fail(error)
            reply.body = broken
            return reply
        }
        reply.body = BodyPipe(whole: bytes, trailers: reply.body.trailers)
        let content = bytes.decoded(of: reply.head, upTo: Int(Self.examinedLimit.bytes)) ?? bytes
        if GraphQLResponse.error(in: Array(content.readableBytesView)) != nil { context.plan.store = .never }
        return reply
    }
}
