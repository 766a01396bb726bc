// The progress of requests and responses on an admin connection, from which its current time limit follows.
import RockpoolEngine

/// Counts the requests read and the responses written.
struct AdminProgress {
    /// Requests that have begun, until the socket has taken the last byte of the response.
    private var unanswered = 0
    /// Of those, the requests with a response that was written completely but not yet taken by the socket.
    private var unsent = 0
    private var isReadingRequest = false
    /// True if the last read yielded at least one part of a request.
    private var madeParts = false
    /// True if the decoder holds bytes that do not form a part yet.
    private var holdsPiece = false

    /// True if no request is in progress: the connection may be closed.
    var isIdle: Bool { unanswered == 0 }

    /// Records the head of a request.
    mutating func readHead() {
        unanswered += 1
        (isReadingRequest, madeParts, holdsPiece) = (true, true, false)
    }

    /// Records a piece of the request's body.
    mutating func readBody() { madeParts = true }

    /// Records the end of the request.
    mutating func readEnd() { (isReadingRequest, madeParts) = (false, true) }

    /// Records that all bytes of the socket were read. Bytes that yielded no part are the beginning of a head.
    mutating func readAll() {
        if !madeParts, !isReadingRequest { holdsPiece = true }
        madeParts = false
    }

    /// Records that the end of a response was written.
    mutating func wroteEnd() { unsent += 1 }

    /// Records that the socket has taken the response. A response to unparsable bytes is also counted here, although no request was.
    mutating func sentEnd() {
        unsent -= 1
        unanswered = max(0, unanswered - 1)
    }

    /// The connection's current phase, which selects its time limit.
    /// - Parameters:
    /// - isWritable: true if the client takes the bytes that are written.
    /// - boundsBodies: true if a body must arrive at a minimum rate.
    func phase(isWritable: Bool, boundsBodies: Bool) -> ConnectionDeadline.Phase {
        if unsent > 0 || !isWritable { return .writing }
        if isReadingRequest, boundsBodies { return .body }
        if isReadingRequest || unanswered > 0 { return .answering }
        return holdsPiece ? .head : .idle
    }
}
