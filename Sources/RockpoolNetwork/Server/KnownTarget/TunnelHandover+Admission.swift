// The comparison of a password before a connection becomes a tunnel (docs/security-model.md#proxy-passwords).
import NIOCore
import RockpoolCore
import RockpoolEngine

extension TunnelHandover {
    /// Runs `proceed` after the password was found right; refuses the request otherwise.
    func admit(
        _ incoming: IncomingHead, by check: @escaping @Sendable () async -> Reply?, context: ChannelHandlerContext,
        proceed: @escaping (ChannelHandlerContext) throws(Refusal) -> Void
    ) {
        let number = connection.requests
        connection.current = CurrentExchange(number: number, body: nil, expectsContinue: false, isOldClient: incoming.isOldClient)
        connection.opensTunnel = true
        connection.enter(.answering, context: context)
        let me = NIOLoopBound((self, proceed), eventLoop: context.eventLoop)
        let loop = context.eventLoop
        connection.current?.task = Task {
            let refusal = await check()
            loop.execute { me.value.0.admitted(number, refusal: refusal, proceed: me.value.1) }
        }
    }

    private func admitted(_ number: Int, refusal: Reply?, proceed: (ChannelHandlerContext) throws(Refusal) -> Void) {
        guard let context = connection.context, let waiting = connection.current, waiting.number == number else { return }
        (connection.current, connection.opensTunnel) = (nil, false)
        if let refusal { return connection.end(with: refusal, context: context) }
        do throws(Refusal) { try proceed(context) } catch { return connection.refuse(error, context: context) }
        // The end of the request has arrived during the check.
        if waiting.isRequestEnded { connection.current?.isRequestEnded = true }
    }
}
