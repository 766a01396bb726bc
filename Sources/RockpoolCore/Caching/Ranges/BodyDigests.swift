// Digests of a body that the origin sends, used to verify a stored body (RFC 9530 §2, §3; RFC 1864).
package import HTTPTypes
import RawStructuredFieldValues

/// The digests of a whole representation, in the algorithms that are verified here.
package struct BodyDigests: Hashable, Sendable {
    package enum Algorithm: String, CaseIterable, Sendable {
        case sha256 = "sha-256"
        case sha512 = "sha-512"
        case md5
    }

    package struct Digest: Hashable, Sendable {
        package var algorithm: Algorithm
        package var bytes: [UInt8]

        package init(algorithm: Algorithm, bytes: [UInt8]) {
            self.algorithm = algorithm
            self.bytes = bytes
        }
    }

    /// Fields that hash the content of one message. In a 206 that content is the part, so they do not describe the whole.
    static let contentFields: Set<String> = ["content-digest", "content-md5"]

    /// The digests the bytes must match, all of them. Empty when the origin sends no readable digest.
    package private(set) var all: [Digest] = []

    /// - Parameter fields: Fields of a 200 or of a stored part. A 206's own `contentFields` are not stored (`PartialResponse.normalized`).
    package init(_ fields: HTTPFields) {
        for name in ["repr-digest", "content-digest"] {
            guard let value = fields.value(of: name) else { continue }
            var parser = StructuredFieldValueParser(Array(value.utf8))
            guard let members = try? parser.parseDictionaryFieldValue() else { continue }
            for algorithm in Algorithm.allCases {
                guard case .item(let item)? = members[algorithm.rawValue], case .undecodedByteSequence(let text) = item.rfc9651BareItem,
                    let bytes = Base64.decode(text)
                else { continue }
                all.append(Digest(algorithm: algorithm, bytes: bytes))
            }
        }
        if let bytes = fields.value(of: "content-md5").flatMap({ Base64.decode($0) }), bytes.count == 16 {
            all.append(Digest(algorithm: .md5, bytes: bytes))
        }
    }
}
