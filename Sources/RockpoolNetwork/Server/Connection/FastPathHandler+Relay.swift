// Relayed exchanges in their connection's order (docs/architecture.md#relays).
import NIOCore
import RockpoolCore
import RockpoolEngine

extension FastPathHandler {
    /// Sends a plain request by a relay, if there is one and a connection for it.
    func beginsRelay(of request: FastPathRequest, in bytes: ByteBuffer, context: ChannelHandlerContext) -> Bool {
        guard connection.mayAnswerAtOnce(context: context), request.length == bytes.readableBytes,
            let relay = engine.relays.relay(
                for: request, in: bytes, at: listener, keepsPath: keepsPath, isLocalClient: connection.isClientLocal(context.channel)),
            let way = pool.take(to: RelayDestination(relay.request), timeout: relay.request.timeouts.connect)
        else { return false }
        if let first = relay.first, !first.begin() {
            pool.takeBack(way)
            return false
        }
        connection.requests += 1
        connection.open?.noteWork()
        connection.current = CurrentExchange(relayed: connection.requests)
        connection.enter(.answering, context: context)
        let exchange = RelayedExchange(relay, on: way, for: self, relays: engine.relays, executor: pool.executor)
        relayed = RelayedRequest(number: connection.requests, bytes: bytes, request: request, exchange: exchange)
        exchange.start()
        return true
    }

    func end(_ relayed: RelayedRequest, isComplete: Bool) {
        self.relayed = nil
        connection.finishExchange(relayed.number, staysOpen: isComplete ? true : nil)
        receiveHeld()
    }

    /// Processes what was received while a relay answered.
    private func receiveHeld() {
        guard held.readableBytes > 0, let context else { return }
        let bytes = held
        held = ByteBuffer()
        connection.holdsBytes = false
        receive(bytes, context: context)
    }
}

/// The request that a relay answers.
struct RelayedRequest {
    let number: Int
    let bytes: ByteBuffer
    let request: FastPathRequest
    let exchange: RelayedExchange
    /// True if the reply is complete, and waits for the client to take it.
    var isComplete = false
}

extension FastPathHandler: RelayClient {
    var takesMore: Bool { context?.channel.isWritable ?? false }

    func send(_ bytes: ByteBuffer) {
        guard let context else { return }
        context.writeAndFlush(wrapOutboundOut(.byteBuffer(bytes)), promise: nil)
    }

    func relayEnded(isComplete: Bool) {
        guard let relayed else { return }
        if isComplete, !takesMore { self.relayed?.isComplete = true } else { end(relayed, isComplete: isComplete) }
    }

    func handOver(_ early: EarlyAnswer?) {
        guard let relayed, let context else { return }
        self.relayed = nil
        connection.requests -= 1
        connection.current = nil
        connection.timer.enter(.idle)
        (connection.early, connection.wasLost) = (early, early == nil)
        let plain = PlainCopy(relayed.request, in: relayed.bytes, listener: listener, last: &lastCredential)
        decode(relayed.bytes, after: plain, context: context)
        receiveHeld()
    }
}
