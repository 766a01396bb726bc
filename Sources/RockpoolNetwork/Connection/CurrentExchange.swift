// The exchange a connection is in.
import RockpoolCore
import RockpoolEngine

/// What a connection knows of the exchange under way.
struct CurrentExchange {
    /// Counts the connection's requests: what comes late for an earlier one is told apart.
    let number: Int
    let body: BodyPipe?
    /// The client waits for `100 Continue`.
    var expectsContinue: Bool
    let isOldClient: Bool
    /// Of the request's body.
    let framing: Framing
    var isRequestEnded = false
    var isBodyPaused = false
    /// The final reply has begun: no interim response may follow.
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
