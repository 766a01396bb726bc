// Where a connection to the admin API stands between its requests and their answers: what its client is waited for.
import RockpoolEngine

/// Counts what was read and written.
struct AdminProgress {
    /// Requests that have begun, and whose answers the socket has not taken whole.
    private var unanswered = 0
    /// Of those, the ones whose answer has been written.
    private var unsent = 0
    private var isReadingRequest = false
    /// Whether what was last read made a part of a request.
    private var madeParts = false
    /// Whether the decoder has bytes of which it could make nothing yet.
    private var holdsPiece = false

    /// No request is under way: the connection may be closed.
    var isIdle: Bool { unanswered == 0 }

    /// The head of a request was read.
    mutating func readHead() {
        unanswered += 1
        (isReadingRequest, madeParts, holdsPiece) = (true, true, false)
    }

    /// Some of its body was read.
    mutating func readBody() { madeParts = true }

    /// Its end was read.
    mutating func readEnd() { (isReadingRequest, madeParts) = (false, true) }

    /// All that the socket had was read; what made no part is the beginning of a head.
    mutating func readAll() {
        if !madeParts, !isReadingRequest { holdsPiece = true }
        madeParts = false
    }

    /// The end of an answer was written.
    mutating func wroteEnd() { unsent += 1 }

    /// The socket has taken it. What could not be read as a request is answered too, and was never counted.
    mutating func sentEnd() {
        unsent -= 1
        unanswered = max(0, unanswered - 1)
    }

    /// What the connection waits for.
    /// - Parameters:
    ///   - isWritable: whether the client takes what is written.
    ///   - boundsBodies: whether a body must come at a rate.
    func phase(isWritable: Bool, boundsBodies: Bool) -> ConnectionDeadline.Phase {
        if unsent > 0 || !isWritable { return .writing }
        if isReadingRequest, boundsBodies { return .body }
        if isReadingRequest || unanswered > 0 { return .answering }
        return holdsPiece ? .head : .idle
    }
}
