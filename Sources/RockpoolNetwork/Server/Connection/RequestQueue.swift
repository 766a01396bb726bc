// The decoded parts of requests that wait for the running exchange (RFC 9112 §9.3.2).
import DequeModule
import NIOHTTP1
import RockpoolCore

/// Holds the parts of pipelined requests in order.
struct RequestQueue {
    private var parts = Deque<HTTPServerRequestPart>()
    /// True if the last decoded part was the end of a request.
    private(set) var endsWithRequest = false
    /// The framing of the body that the next bytes belong to, by the last decoded head; `.none` after its end.
    private var last = Framing.none

    var isEmpty: Bool { parts.isEmpty }

    /// The framing of the body that the next bytes belong to; nil if that request does not wait.
    var framing: Framing? { parts.isEmpty ? nil : last }

    mutating func append(_ part: HTTPServerRequestPart) {
        endsWithRequest = false
        switch part {
        case .head(let head): last = Framing(of: head)
        case .body: break
        case .end: (endsWithRequest, last) = (true, .none)
        }
        parts.append(part)
    }

    mutating func removeFirst() -> HTTPServerRequestPart? { parts.popFirst() }

    mutating func removeAll() { parts.removeAll() }

    /// Resets `endsWithRequest` before the next bytes are decoded.
    mutating func beginDecoding() { endsWithRequest = false }
}

extension Framing {
    /// The framing that the decoder applies to the body after a head; the gate judges the head when its turn has come.
    fileprivate init(of head: HTTPRequestHead) {
        if head.headers.contains(name: "transfer-encoding") {
            self = .chunked
        } else {
            let length = head.headers.first(name: "content-length").flatMap { Int64($0) } ?? 0
            self = length > 0 ? .length(length) : .none
        }
    }
}
