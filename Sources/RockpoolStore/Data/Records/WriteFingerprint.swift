// What tells two writes with one key apart (docs/outbox.md#keys).
import Crypto
import FoundationEssentials
import HTTPTypes
package import RockpoolCore

/// The SHA-256 of method, URL in its canonical spelling, type and body, each preceded by its length. Used to detect a key reused with another
/// payload, never to treat two equal writes as one.
package struct WriteFingerprint: Sendable {
    /// Of everything but the body.
    private var hash = SHA256()

    package init(_ request: RequestHead) {
        for part in [request.method.rawValue, request.url.canonicalEscapes, request.fields[.contentType] ?? ""] { add(Array(part.utf8)) }
        for name in Self.fields { if let value = request.fields[name] { add(Array("\(name.canonicalName): \(value)".utf8)) } }
    }

    /// What a COPY, a MOVE or a copy of an object does is in these fields.
    private static let fields = ["Destination", "Depth", "Overwrite", "X-Amz-Copy-Source"].compactMap { HTTPField.Name($0) }

    /// The fingerprint of a write with this body.
    package func of(_ body: [UInt8]) -> [UInt8] { of(hash: SHA256.hash(data: body).bytes) }

    /// - Parameter hash: the SHA-256 of the body.
    package func of(hash: [UInt8]) -> [UInt8] {
        var whole = self
        whole.add(hash)
        return whole.hash.finalize().bytes
    }

    private mutating func add(_ part: [UInt8]) {
        hash.update(data: Array("\(part.count):".utf8) + part)
    }
}
