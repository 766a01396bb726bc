// The exchange a connection is in.
import RockpoolEngine

/// What a connection knows of the exchange under way.
struct CurrentExchange {
    let body: BodyPipe?
    /// The client waits for `100 Continue`.
    var expectsContinue: Bool
    let isOldClient: Bool
    var isRequestEnded = false
    var isBodyPaused = false
    /// The final reply has begun: no interim response may follow.
    var hasReplied = false
    var task: Task<Void, Never>?

    init(body: BodyPipe?, expectsContinue: Bool, isOldClient: Bool) {
        self.body = body
        self.expectsContinue = expectsContinue
        self.isOldClient = isOldClient
    }
}
