// A connection that becomes a tunnel: CONNECT and WebSocket upgrades (RFC 9110 §9.3.6, §7.8).
import HTTPTypes
import NIOCore
import NIOHTTP1
import RockpoolCore

extension ConnectionHandler {
    func openTunnel(host: String, port: Int, _ context: ChannelHandlerContext) {
        current = CurrentExchange(number: requests, body: nil, expectsContinue: false, isOldClient: false)
        enter(.answering, context)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        service.dialer.connect(host: host, port: port, isLocalClient: isLocal(context.channel), on: context.eventLoop).whenComplete {
            result in
            me.value.tunnelDialed(result.mapError { $0 as? Refusal ?? Refusal.unreachable("\(host):\(port)", $0) })
        }
    }

    private func tunnelDialed(_ result: Result<any Channel, Refusal>) {
        guard let context else {
            if case .success(let peer) = result { peer.close(promise: nil) }
            return
        }
        switch result {
        case .success(let peer):
            let established = context.channel.allocator.buffer(string: "HTTP/1.1 200 Connection established\r\n\r\n")
            context.writeAndFlush(wrapOutboundOut(.byteBuffer(established)), promise: nil)
            becomeTunnel(to: peer, context)
        case .failure(let refusal):
            current = nil
            refuse(refusal, context)
        }
    }

    func upgrade(_ request: RequestHead, _ incoming: IncomingHead, _ context: ChannelHandlerContext) {
        current = CurrentExchange(number: requests, body: nil, expectsContinue: false, isOldClient: false)
        enter(.answering, context)
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        service.dialer.upgrade(
            request, incoming.fields, isLocalClient: isLocal(context.channel), on: context.eventLoop
        ).whenComplete { result in
            me.value.upgraded(result.mapError { $0 as? Refusal ?? Refusal.unreachable(request.origin.hostAndPort, $0) })
        }
    }

    private func upgraded(_ result: Result<UpgradeAnswer, Refusal>) {
        guard let context else {
            if case .success(let answer) = result { answer.channel.close(promise: nil) }
            return
        }
        switch result {
        case .success(let answer):
            var buffer = context.channel.allocator.buffer(capacity: 512)
            answer.write(into: &buffer)
            context.writeAndFlush(wrapOutboundOut(.byteBuffer(buffer)), promise: nil)
            becomeTunnel(to: answer.channel, context, isOneWay: !answer.isSwitching)
        case .failure(let refusal):
            current = nil
            refuse(refusal, context)
        }
    }

    /// Leaves the pipeline to two glued channels; bytes the decoder had not parsed go to the peer first.
    private func becomeTunnel(to peer: any Channel, _ context: ChannelHandlerContext, isOneWay: Bool = false) {
        timer?.cancel()
        isLeaving = true
        let channel = context.channel
        do {
            try Glue.join(channel, peer, idle: service.timeouts.tunnel, isOneWay: isOneWay, clientHasEnded: isInputClosed)
            try channel.pipeline.syncOperations.removeRequestDecoder()
            channel.pipeline.syncOperations.removeHandler(self, promise: nil)
        } catch {
            peer.close(promise: nil)
            context.close(promise: nil)
        }
    }
}
