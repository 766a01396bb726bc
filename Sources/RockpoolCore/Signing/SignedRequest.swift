// Requests that carry a signature instead of a reusable credential: the name of their key and the end of their validity (AWS Signature
// Version 4, RFC 9421, RFC 7616, Hawk; docs/caching.md#partitions).
package import HTTPTypes

/// The signer that a request names, and how long its signature is accepted.
package struct SignedRequest: Hashable, Sendable {
    package enum Scheme: String, CaseIterable, Sendable { case sigV4, messageSignature, hawk, digest, basic }

    package var scheme: Scheme
    /// The key id or user name, as sent.
    package var keyID: String
    /// When the upstream stops accepting the signature; nil if it does not say so.
    package var expiresAt: Timestamp?

    /// S3 refuses a signature that is older.
    package static let sigV4Lifetime = TimeSpan.seconds(15 * 60)

    /// The fields that carry a signature, and what only it makes valid.
    package static let fields: Set<HTTPField.Name> = Set(
        ["Authorization", "Signature", "Signature-Input", "X-Amz-Security-Token"].compactMap { HTTPField.Name($0) })

    /// Reads a value of `Authorization`; nil if it holds neither a signature nor a user's name.
    package init?(authorization: String) { self.init(authorization: authorization, [:]) }

    /// Reads the signature of a request; nil without one.
    package init?(_ request: RequestHead) {
        let fields = request.fields
        if let authorization = fields.single(.authorization) {
            self.init(authorization: authorization, fields)
        } else if let input = fields.value(of: "signature-input") {
            self.init(.messageSignature, Self.parameter("keyid", in: input))
            expiresAt = Self.parameter("expires", in: input).flatMap { Int64($0) }.map { Timestamp(seconds: $0) }
        } else {
            return nil
        }
    }

    private init?(authorization: String, _ fields: HTTPFields) {
        if let scheme = authorization.split(separator: " ").first {
            let rest = String(authorization.dropFirst(scheme.count + 1))
            switch scheme.lowercased() {
            case "aws4-hmac-sha256", "aws4-ecdsa-p256-sha256": self.init(sigV4: rest, fields)
            case "hawk": self.init(.hawk, Self.parameter("id", in: rest))
            case "digest": self.init(.digest, Self.parameter("username", in: rest))
            case "basic": self.init(.basic, Self.user(ofBasic: rest))
            case "signature": self.init(.messageSignature, Self.parameter("keyId", in: rest))
            default: return nil
            }
        } else {
            return nil
        }
    }

    /// True if the signature covers the name of the host, so that a gateway that sends another name breaks it.
    package var coversHost: Bool { scheme == .sigV4 || scheme == .messageSignature || scheme == .hawk }

    /// True if the signature is of this request alone, so that it must be kept with a queued write and never be sent with another.
    package var isOfOneRequest: Bool { scheme != .basic }

    /// True for a request of an AWS client: signed in its `Authorization`.
    package static func usesSigV4(_ request: RequestHead) -> Bool { SignedRequest(request)?.scheme == .sigV4 }

    private init?(_ scheme: Scheme, _ keyID: String?) {
        guard let keyID, !keyID.isEmpty, keyID.utf8.count <= 512 else { return nil }
        (self.scheme, self.keyID) = (scheme, keyID)
    }

    /// The credential's scope begins with the key id; `X-Amz-Date` starts the 15 minutes.
    private init?(sigV4 parameters: String, _ fields: HTTPFields) {
        self.init(.sigV4, Self.parameter("Credential", in: parameters)?.split(separator: "/").first.map(String.init))
        let signedAt = fields.value(of: "x-amz-date").flatMap(Self.basicFormat) ?? fields.value(of: "date").flatMap { HTTPDate.parse($0) }
        expiresAt = signedAt.map { $0 + Self.sigV4Lifetime }
    }

    /// The value of `name=value` or `name="value"` in a list that commas or semicolons separate.
    private static func parameter(_ name: String, in text: String) -> String? {
        for member in FieldList.members(of: text) {
            for part in member.split(separator: ";").map(FieldList.trimmed) {
                let pair = part.split(separator: "=", maxSplits: 1)
                guard pair.count == 2, FieldByte.equal(pair[0].utf8, name.utf8) else { continue }
                return pair[1].hasPrefix("\"") ? String(pair[1].dropFirst().prefix { $0 != "\"" }) : String(pair[1])
            }
        }
        return nil
    }

    private static func user(ofBasic credentials: String) -> String? {
        guard let bytes = Base64.decode(String(FieldList.trimmed(credentials[...]))), let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        return String(decoding: bytes[..<colon], as: UTF8.self)
    }

    /// `20130524T000000Z`, the basic format of ISO 8601.
    static func basicFormat(_ text: String) -> Timestamp? {
        let bytes = Array(text.utf8)
        guard bytes.count == 16, bytes[8] == UInt8(ascii: "T"), bytes[15] == UInt8(ascii: "Z") else { return nil }
        let part = { (range: Range<Int>) in String(decoding: bytes[range], as: UTF8.self) }
        return RFC3339.parse("\(part(0..<4))-\(part(4..<6))-\(part(6..<8))T\(part(9..<11)):\(part(11..<13)):\(part(13..<15))Z")
    }
}
