// The identity of a body: the tag and the length that several messages share, and the digests that an origin sends.
package import HTTPTypes
import RawStructuredFieldValues

/// One state of a resource (RFC 9110 §8.8.3, RFC 9111 §3.4; docs/caching.md#ranges): bytes of equal strong tag and total length belong
/// together.
package struct Representation: Hashable, Sendable {
    package let tag: EntityTag
    /// Length of the whole body, in bytes.
    package let length: Int64

    /// Reads the representation that a response holds, whole or in part; nil without a strong tag or a known length.
    /// - Parameter length: The announced length of the body of a 200.
    package init?(of head: ResponseHead, length: Int64?) {
        guard let tag = head.fields.single(.eTag).flatMap({ EntityTag($0) }), tag.isStrong,
            let whole = head.status == 206 ? PartialResponse.part(of: head)?.length : head.status == 200 ? length : nil, whole > 0
        else { return nil }
        self.tag = tag
        self.length = whole
    }

    /// Reads the representation of a stored response.
    package init?(of stored: StoredResponse) { self.init(of: stored.head, length: stored.bodyLength) }
}

extension Range<Int64> {
    /// The bytes of this range that none of `held` contains, in order.
    package func gaps(between held: [Range<Int64>]) -> [Range<Int64>] {
        var (gaps, start) = ([Range<Int64>](), lowerBound)
        for range in held.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.upperBound > start && range.lowerBound < upperBound {
            if range.lowerBound > start { gaps.append(start..<range.lowerBound) }
            start = Swift.max(start, range.upperBound)
        }
        if start < upperBound { gaps.append(start..<upperBound) }
        return gaps
    }
}

extension StoredResponse {
    /// The stored response as the whole that it is a part of, for decisions about its reuse; nil if the length of the whole is unknown.
    package var asWhole: StoredResponse? {
        guard let part else { return self }
        guard let length = part.length else { return nil }
        var whole = self
        whole.head = PartialResponse.holding(0..<length, of: length, fields: head.fields)
        whole.bodyLength = length
        return whole
    }

    /// The bytes that are stored, as positions in the whole.
    package var heldRange: Range<Int64>? { part.map(\.range) ?? 0..<bodyLength }

    /// True if the origin is known to answer requests for ranges.
    package var supportsRanges: Bool {
        part != nil || head.fields[.acceptRanges]?.lowercased().contains("bytes") == true
    }
}

/// The digests of a whole representation, in the algorithms that are verified here (RFC 9530 §2, §3; RFC 1864).
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
