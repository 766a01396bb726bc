// The running exchange of a connection.
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
    var isRequestEnded = false
    var isBodyPaused = false
    /// True after the final reply has begun: no interim response may follow.
    var hasReplied = false
    var task: Task<Void, Never>?

    init(number: Int, body: BodyPipe?, expectsContinue: Bool, isOldClient: Bool, framing: Framing = .none) {
        self.number = number
        self.body = body
        self.expectsContinue = expectsContinue
        self.isOldClient = isOldClient
        self.framing = framing
    }
}
