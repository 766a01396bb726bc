// The decoded parts of requests that wait for the running exchange (RFC 9112 §9.3.2).
import DequeModule
import NIOHTTP1

/// Holds the parts of pipelined requests in order.
struct RequestQueue {
    private var parts = Deque<HTTPServerRequestPart>()
    /// True if the last decoded part was the end of a request.
    private(set) var endsWithRequest = false

    var isEmpty: Bool { parts.isEmpty }

    mutating func append(_ part: HTTPServerRequestPart) {
        if case .end = part { endsWithRequest = true } else { endsWithRequest = false }
        parts.append(part)
    }

    mutating func removeFirst() -> HTTPServerRequestPart? { parts.popFirst() }

    mutating func removeAll() { parts.removeAll() }

    /// Resets `endsWithRequest` before the next bytes are decoded.
    mutating func beginDecoding() { endsWithRequest = false }
}
