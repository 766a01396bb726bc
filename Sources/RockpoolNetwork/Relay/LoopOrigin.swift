// Sends the requests of pipelines on the connections of their client's event loop, and everything else with libcurl
// (docs/architecture.md#parts *upstream*).
import HTTPTypes
import NIOCore
package import RockpoolCore
package import RockpoolEngine

/// The production `Origin`. A read whose task runs on its client's event loop, and a small write, need no other thread where their upstream
/// keeps HTTP/1.1 connections.
package final class LoopOrigin: Origin {
    private let curl: CurlOrigin
    let pools: RelayPools
    private let now: @Sendable () -> Timestamp

    /// - Parameters:
    ///   - addresses: the policy that each resolved address must pass at each connection attempt.
    ///   - ownPorts: the proxy's own listeners, never connected to on this machine.
    package init(curl: CurlOrigin, addresses: AddressPolicy, ownPorts: OwnPorts, now: @escaping @Sendable () -> Timestamp) {
        (self.curl, self.now) = (curl, now)
        pools = RelayPools(resolver: AddressResolver(addresses: addresses, ownPorts: ownPorts))
    }

    package func send(_ request: OutboundRequest) async throws(TransferFailure) -> OriginReply {
        guard let executor = request.loop as? LoopExecutor, request.isWrite || executor.loop.inEventLoop, Self.suits(request) else {
            return try await curl.send(request)
        }
        let outcome = await withTaskExecutorPreference(executor) { await sendOnLoop(request, by: executor) }
        if let result = outcome?.result { return try result.get() }
        // It may have been away for long.
        guard request.isPermitted() else {
            let sent: TransferFailure.Sent = outcome == nil ? .no : .maybe
            throw TransferFailure(kind: .unavailable, sent: sent, detail: "ended: the network is switched off")
        }
        var reply: OriginReply
        do throws(TransferFailure) { reply = try await curl.send(request) } catch {
            // The first sending counts if the second one has sent nothing.
            throw error.sent == .no ? outcome?.lost ?? error : error
        }
        if outcome?.lost != nil { reply.wire?.isRepeated = true }
        if reply.wire?.endsConnection != true {
            let (pools, loop, destination) = (pools, executor.loop, RelayDestination(request))
            loop.execute { pools.pool(of: loop).noteKept(destination) }
        }
        return reply
    }

    /// The largest body in bytes that is sent on a loop.
    private static let bodyLimit = Int.kib(64)

    /// True for a request in plaintext whose exchange needs nothing but HTTP/1.1, to an upstream that may have connections open.
    private static func suits(_ request: OutboundRequest) -> Bool {
        guard request.head.origin.scheme == .http, request.isWrite || request.head.method == .get else { return false }
        switch request.body {
        case .none: break
        case .bytes(let bytes) where request.isWrite && bytes.readableBytes <= bodyLimit: break
        case .bytes, .stored, .stream: return false
        }
        // One that must not be sent twice: `take` looks for a connection that was used a moment ago.
        guard request.isWrite || !request.needsFreshConnection else { return false }
        let fields = request.head.fields
        // NTLM and Negotiate prove the identity of a connection, which no other client may use then.
        let isOfConnection = fields[.authorization]?.first.map { "nN".contains($0) } ?? false
        return request.isDeclared && request.allowsLoopback && request.via == nil && request.peer == nil
            && !isOfConnection && !fields.contains(.te) && !fields.contains(.upgrade) && !fields.contains(.expect)
    }

    /// Returns nil if libcurl is to send the request: there is no idle connection, or it ended without an answer.
    private func sendOnLoop(_ request: OutboundRequest, by executor: LoopExecutor) async -> RelayOutcome? {
        let (pools, moment, loop) = (pools, now(), executor.loop)
        let client = NIOLoopBound(LoopClient(interim: request.interim), eventLoop: loop)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let pool = pools.pool(of: loop)
                guard
                    let connection = pool.take(
                        to: RelayDestination(request), idleAtMost: request.needsFreshConnection ? RelayedWrite.quiet : nil,
                        ifKeptWithin: request.timeouts.connect)
                else {
                    return continuation.resume(returning: nil)
                }
                let exchange = RelayedExchange(
                    Relay(of: request, now: moment), on: connection, for: client.value, relays: nil, executor: executor)
                client.value.begin(exchange, continuation)
            }
        } onCancel: {
            loop.execute { client.value.cancel() }
        }
    }

    package func endTransfers(to origin: OriginAddress?) { curl.endTransfers(to: origin) }

    package func distrustKept(to origin: OriginAddress) { curl.distrustKept(to: origin) }

    /// Stops libcurl's thread; running transfers fail as cancelled.
    package func close() { curl.close() }
}

/// A request that waits for its response. On the event loop only.
private final class LoopClient: RelayClient {
    private let interim: @Sendable (ResponseHead) -> Void
    private var exchange: RelayedExchange?
    private var waiting: CheckedContinuation<RelayOutcome?, Never>?

    init(interim: @escaping @Sendable (ResponseHead) -> Void) { self.interim = interim }

    func begin(_ exchange: RelayedExchange, _ continuation: CheckedContinuation<RelayOutcome?, Never>) {
        (self.exchange, waiting) = (exchange, continuation)
        exchange.start()
    }

    func cancel() {
        guard let waiting else { return }
        exchange?.cancel()
        (self.waiting, exchange) = (nil, nil)
        waiting.resume(returning: RelayOutcome(.failure(.cancelled)))
    }

    var takesMore: Bool { true }

    func send(_ bytes: ByteBuffer) {}

    func relayEnded(isComplete: Bool) {}

    func handOver(_ outcome: RelayOutcome) {
        exchange = nil
        waiting?.resume(returning: outcome)
        waiting = nil
    }

    func sendInterim(_ head: ResponseHead) { interim(head) }
}
