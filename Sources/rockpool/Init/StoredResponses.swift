// The shared responses of a running server, read from its export (docs/reference/admin-api.md#bundles).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Collects JSON responses from the bytes of a WARC file.
final class StoredResponses: Sendable {
    /// The most bytes of one body; a longer one is left out.
    private static let bodyLimit = Int.mib(4)

    private struct State {
        var reader = WARCReader()
        var url: String?
        var head: HTTPBlockHead?
        var response: ResponseHead?
        var body: [UInt8] = []
        var found: [(url: String, status: Int, body: JSONValue)] = []
        /// Responses with a content coding that is not known here.
        var coded = 0
    }

    private let state = Mutex(State())

    /// The responses so far.
    var found: [(url: String, status: Int, body: JSONValue)] { state.withLock(\.found) }
    /// The number of responses that were not decoded.
    var coded: Int { state.withLock(\.coded) }

    /// Takes the next bytes of the file. Throws if they are not WARC.
    func take(_ bytes: UnsafeRawBufferPointer) throws {
        try state.withLock { state in
            var rest = Array(bytes)[...]
            while let event = try state.reader.next(in: &rest) {
                switch event {
                case .head(let head):
                    state.url = head.type == "response" && head.isHTTP ? head.targetURI : nil
                    (state.head, state.response, state.body) = (HTTPBlockHead(isRequest: false), nil, [])
                case .block(let part): Self.take(part, into: &state)
                case .end: Self.finish(&state)
                }
            }
        }
    }

    private static func take(_ part: ArraySlice<UInt8>, into state: inout State) {
        guard state.url != nil else { return }
        var rest = part
        if state.response == nil, case .response(let head)? = try? state.head?.take(from: &rest) { state.response = head }
        if state.response != nil, state.body.count + rest.count <= bodyLimit { state.body += rest }
    }

    private static func finish(_ state: inout State) {
        guard let url = state.url, let response = state.response, MediaType.isJSON(response.fields) else { return }
        guard let bytes = decoded(state.body, coding: response.fields[.contentEncoding]) else { return state.coded += 1 }
        guard let body = try? JSONValue.parse(bytes) else { return }
        state.found.append((url, response.status, body))
    }

    /// The body without its coding; nil if that is neither gzip nor deflate, or if the body is too long.
    private static func decoded(_ body: [UInt8], coding: String?) -> [UInt8]? {
        guard let coding else { return body }
        guard ["gzip", "deflate"].contains(coding.lowercased()) else { return nil }
        let inflation = Inflation()
        var (input, output) = (ByteBuffer(bytes: body), [UInt8]())
        while input.readableBytes > 0, output.count <= bodyLimit {
            guard let piece = try? inflation.expand(&input, upTo: .kib(256)) else { return nil }
            output += piece.readableBytesView
            if piece.readableBytes == 0, inflation.isWhole { break }
        }
        return output.count <= bodyLimit ? output : nil
    }
}
