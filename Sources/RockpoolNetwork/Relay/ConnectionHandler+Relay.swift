// A relayed exchange in its connection's order (docs/architecture.md#relays).
import NIOCore
import RockpoolCore
import RockpoolEngine

extension ConnectionHandler {
    /// Notes that a relay answers the next request.
    /// - Returns: the number of the exchange.
    func beginRelay(context: ChannelHandlerContext) -> Int {
        requests += 1
        open?.noteWork()
        var exchange = CurrentExchange(number: requests, body: nil, expectsContinue: false, isOldClient: false)
        (exchange.isRequestEnded, exchange.hasReplied) = (true, true)
        current = exchange
        enter(.answering, context: context)
        return requests
    }

    /// Takes back `beginRelay`: the request is decoded after all.
    /// - Parameter early: its response, if the relay has it.
    func endRelay(early: EarlyAnswer?) {
        requests -= 1
        current = nil
        timer.enter(.idle)
        self.early = early
    }
}
