// The running exchange of a connection.
import NIOCore
import RockpoolCore
import RockpoolEngine

/// The state of a connection's running exchange.
struct CurrentExchange {
    /// The number of the request on its connection; identifies late events of an earlier exchange.
    let number: Int
    let body: BodyPipe?
    /// True while the client waits for `100 Continue`.
    var expectsContinue: Bool
    let isOldClient: Bool
    /// The framing of the request's body.
    let framing: Framing
    /// True if a relay answers: it keeps a little of what the client sends meanwhile.
    private(set) var isRelayed = false
    var isRequestEnded = false
    var isBodyPaused = false
    /// True after the final reply has begun: no interim response may follow.
    var hasReplied = false
    var task: Task<Void, Never>?
    /// Its place among the exchanges under way; nil for a stream, whose connection keeps it.
    var place: ExchangePlace?

    init(number: Int, body: BodyPipe?, expectsContinue: Bool, isOldClient: Bool, framing: Framing = .none) {
        self.number = number
        self.body = body
        self.expectsContinue = expectsContinue
        self.isOldClient = isOldClient
        self.framing = framing
    }

    /// The exchange of a request without a body that a relay answers.
    init(relayed number: Int, place: ExchangePlace?) {
        self.init(number: number, body: nil, expectsContinue: false, isOldClient: false)
        self.place = place
        (isRequestEnded, hasReplied, isRelayed) = (true, true, true)
    }

    /// Passes bytes of the body on. `isBodyPaused` is set while the pipe is full.
    mutating func receive(_ bytes: ByteBuffer, timer: inout DeadlineTimer) {
        guard let body, bytes.readableBytes > 0 else { return }
        timer.receive(byteCount: bytes.readableBytes)
        // Its reader may have made room since an earlier chunk of the same turn: then no signal says so.
        isBodyPaused = !body.offer(bytes)
    }

    /// Notes the end of the request: from now on the client waits for the proxy.
    mutating func endRequest(timer: inout DeadlineTimer) {
        isRequestEnded = true
        body?.finish()
        timer.enter(.answering)
    }

    /// Ends the exchange without a reply; `failure` is the reason that the body's reader gets.
    func cancel(failure: TransferFailure) {
        body?.fail(failure)
        task?.cancel()
    }
}
