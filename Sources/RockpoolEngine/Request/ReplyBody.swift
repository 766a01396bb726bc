// The body of a reply: bytes, a part of a file, or a stream.
package import NIOCore
import RockpoolCore
import RockpoolStore

/// A reply's body, in the form that is cheapest to send.
package enum ReplyBody: Sendable {
    /// No body follows; `length` is the length for a GET (in a response to HEAD), if known.
    case none(length: Int64?)
    case bytes(ByteBuffer)
    /// `length` bytes of the file, from `offset`. `lease` keeps the file from being unlinked until it is open.
    case file(path: String, offset: Int64, length: Int64, lease: any Sendable)
    /// A `length` of nil means chunked, or until the connection closes.
    case stream(any BodySource, length: Int64?)

    /// True if the body is in memory, or there is none.
    package var isAtHand: Bool {
        switch self {
        case .none, .bytes: true
        case .file, .stream: false
        }
    }

    init(_ body: CachedBody, in cache: CacheStore) {
        switch body {
        case .bytes(let bytes): self = .bytes(bytes)
        case .file(let path, let offset, let length, let lease): self = .file(path: path, offset: offset, length: length, lease: lease)
        case .sealed: self = .stream(StoredBodySource(body, in: cache), length: body.length)
        }
    }
}

extension ReplyBody {
    /// Reads the body into memory; the reply keeps it in that form. Nil if there is none, if it has more than `limit` bytes, or if it breaks
    /// off; then it is sent as it would have been.
    mutating func collect(upTo limit: Int, from cache: CacheStore) async -> ByteBuffer? {
        switch self {
        case .none: return nil
        case .bytes(let bytes): return bytes.readableBytes <= limit ? bytes : nil
        case .file(let path, let offset, let length, let lease):
            guard length <= limit, let lease = lease as? BodyLease,
                let bytes = try? await cache.read(0..<length, of: .file(path: path, offset: offset, length: length, lease: lease))
            else { return nil }
            self = .bytes(bytes)
            return bytes
        case .stream(let source, let length):
            guard length ?? 0 <= limit else { return nil }
            let (bytes, rest) = await source.beginning(upTo: limit)
            self = rest.map { .stream(BodyPipe(bytes, then: $0), length: length) } ?? .bytes(bytes)
            return rest == nil ? bytes : nil
        }
    }
}

extension BodySource {
    /// Reads until the end or past `limit` bytes. `rest` yields what follows, or the failure that interrupted the body; nil at the end.
    func beginning(upTo limit: Int) async -> (bytes: ByteBuffer, rest: (any BodySource)?) {
        var bytes = ByteBuffer()
        do throws(TransferFailure) {
            while var chunk = try await next() {
                bytes.writeBuffer(&chunk)
                if bytes.readableBytes > limit { return (bytes, self) }
            }
            return (bytes, nil)
        } catch {
            return (bytes, BodyPipe(broken: error))
        }
    }
}
