// The body of a reply: bytes, a part of a file, or a stream.
package import NIOCore
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

    init(_ body: CachedBody, in cache: CacheStore) {
        switch body {
        case .bytes(let bytes): self = .bytes(bytes)
        case .file(let path, let offset, let length, let lease): self = .file(path: path, offset: offset, length: length, lease: lease)
        case .sealed: self = .stream(StoredBodySource(body, in: cache), length: body.length)
        }
    }
}
