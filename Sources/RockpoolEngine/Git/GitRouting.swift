// Routes the POSTs of a route with `kind: git`: what asks is a read with a key, anything else a write that never waits
// (docs/reference/configuration.md#routes).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// Reads what a client of git or Git LFS asks.
enum GitRouting {
    /// The longest question that is read; a longer one is passed through.
    private static let limit = Int.mib(1)

    /// Reads the request's body and completes the plan.
    /// - Returns: The body and its key for a question; nil for a write, which `exchange` then carries, and for a question that is too long.
    /// - Throws: The failure that interrupted the body.
    static func route(_ exchange: inout Exchange, plan: inout RoutePlan, routes: RouteTable) async throws(TransferFailure) -> KeyingBody? {
        let asked = GitExchange(exchange.request)
        guard asked.asksByBody, !plan.isWrite, let bytes = try await exchange.collected(upTo: limit) else { return nil }
        let coding = ResponseHead(status: 200, fields: HTTPFields(exchange.request.fields.filter { $0.name == .contentEncoding }))
        let plain = bytes.decoded(of: coding, upTo: 8 * limit).map { Array($0.readableBytesView) }
        if asked == .largeFiles {
            guard let request = plain.flatMap({ LargeFileRequest(body: $0) }) else {
                plan = routes.plan(for: exchange.request, isWrite: true)
                (exchange.body, exchange.bodyLength) = (BodyPipe(whole: bytes), Int64(bytes.readableBytes))
                return nil
            }
            return KeyingBody(bytes, of: request)
        }
        guard let request = plain.flatMap({ GitRequest(body: $0) }) else { return KeyingBody(bytes, for: exchange.request) }
        if let replacement = request.replacement {
            exchange.request.fields[.contentEncoding] = nil
            return KeyingBody(ByteBuffer(bytes: replacement), of: request)
        }
        return KeyingBody(bytes, of: request)
    }
}

extension KeyingBody {
    fileprivate init(_ bytes: ByteBuffer, of request: GitRequest) {
        self.init(bytes: bytes, digest: CacheStore.digest(of: request.key))
        git = request
    }

    fileprivate init(_ bytes: ByteBuffer, of request: LargeFileRequest) {
        self.init(bytes: bytes, digest: CacheStore.digest(of: request.key))
        largeFiles = request
    }
}
