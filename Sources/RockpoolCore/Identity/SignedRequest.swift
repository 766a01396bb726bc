// Requests that carry a signature instead of a reusable credential: in their fields (docs/caching.md#partitions), or in a query that
// permits them for a time (docs/caching.md#presigned-urls).
package import HTTPTypes

/// The signer that a request names, and how long its signature is accepted (AWS Signature Version 4, RFC 9421, RFC 7616, Hawk;
/// docs/caching.md#partitions).
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

// MARK: - Presigned URLs

/// A URL whose query permits a request for a time: AWS Signature Version 4 and 2, Google Cloud Storage, the shared access signatures of Azure,
/// and CloudFront. A request's target with what signs it.
package struct PresignedURL: Hashable, Sendable {
    /// The target without what signs it: the same whenever, and by whomever, it was signed.
    package let target: String
    /// What signs it.
    package let signature: String
    /// When the upstream stops accepting it; nil if the query does not say so.
    package let expiresAt: Timestamp?

    /// Nil for a target that is not signed.
    package init?(target: String) {
        guard target.utf8.count <= Self.lengthLimit, Self.namesSignature(target), let mark = target.firstIndex(of: "?") else { return nil }
        let parameters = target[target.index(after: mark)...].split(separator: "&").map(Parameter.init)
        let names = Set(parameters.map(\.name))
        guard let form = Form.allCases.first(where: { $0.required.isSubset(of: names) }) else { return nil }
        let (signing, others) = (
            parameters.filter { form.signing.contains($0.name) }, parameters.filter { !form.signing.contains($0.name) }
        )
        let rest = others.map(\.text).joined(separator: "&")
        self.target = String(target[..<mark]) + (rest.isEmpty ? "" : "?" + rest)
        signature = signing.map(\.text).joined(separator: "&")
        expiresAt = form.end { name in signing.first { $0.name == name }?.value }
    }

    /// True if `sig` is in it, in any case: in the names of all forms. Most targets are told by it without being split.
    private static func namesSignature(_ target: String) -> Bool {
        var found = 0
        for byte in target.utf8 {
            let letter = byte | 0x20
            found = letter == sig[found] ? found + 1 : letter == sig[0] ? 1 : 0
            if found == sig.count { return true }
        }
        return false
    }

    private static let sig = Array("sig".utf8)

    /// A longer target is not looked at.
    private static let lengthLimit = Int.kib(16)

    private struct Parameter {
        let text: Substring
        let name: String

        init(_ text: Substring) { (self.text, name) = (text, text.prefix { $0 != "=" }.lowercased()) }

        var value: String {
            String(
                decoding: FormEncoding.decoded(text.utf8.drop { $0 != UInt8(ascii: "=") }.dropFirst(), plusIsSpace: false), as: UTF8.self)
        }
    }

    private enum Form: CaseIterable {
        case aws4, google4, aws2, google2, cloudFront, cloudFrontPolicy, azure

        /// The parameters by which it is known.
        var required: Set<String> {
            switch self {
            case .aws4: ["x-amz-credential", "x-amz-date", "x-amz-signature"]
            case .google4: ["x-goog-credential", "x-goog-date", "x-goog-signature"]
            case .aws2: ["awsaccesskeyid", "expires", "signature"]
            case .google2: ["googleaccessid", "expires", "signature"]
            case .cloudFront: ["key-pair-id", "expires", "signature"]
            case .cloudFrontPolicy: ["key-pair-id", "policy", "signature"]
            case .azure: ["sv", "sig"]
            }
        }

        /// The parameters that sign, and say nothing of what is asked for.
        var signing: Set<String> {
            switch self {
            case .aws4:
                required.union(["x-amz-algorithm", "x-amz-expires", "x-amz-signedheaders", "x-amz-security-token", "x-amz-content-sha256"])
            case .google4: required.union(["x-goog-algorithm", "x-goog-expires", "x-goog-signedheaders"])
            case .aws2: required.union(["x-amz-security-token"])
            case .google2: required
            case .cloudFront, .cloudFrontPolicy: required.union(["hash-algorithm"])
            case .azure:
                required.union([
                    "st", "se", "sp", "sr", "si", "sip", "spr", "ss", "srt", "ses", "sdd", "saoid", "suoid", "scid",
                    "skoid", "sktid", "skt", "ske", "sks", "skv",
                ])
            }
        }

        func end(_ value: (String) -> String?) -> Timestamp? {
            switch self {
            case .aws4: Self.end(value("x-amz-date"), value("x-amz-expires"))
            case .google4: Self.end(value("x-goog-date"), value("x-goog-expires"))
            case .aws2, .google2, .cloudFront: value("expires").flatMap { Int64($0) }.map { Timestamp(seconds: $0) }
            case .cloudFrontPolicy: value("policy").flatMap(Self.end(ofPolicy:))
            // Its time may end with the minute, or be a date.
            case .azure:
                value("se").flatMap { time in
                    RFC3339.parse(time) ?? RFC3339.parse(time.replacing("Z", with: ":00Z")) ?? RFC3339.parse(time + "T00:00:00Z")
                }
            }
        }

        private static func end(_ date: String?, _ seconds: String?) -> Timestamp? {
            guard let start = date.flatMap(SignedRequest.basicFormat), let seconds = seconds.flatMap({ Int64($0) }), seconds >= 0 else {
                return nil
            }
            return start + .seconds(min(seconds, TimeSpan.days(7).seconds))
        }

        /// JSON in Base64 with other digits (https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/private-content-signed-urls.html).
        private static func end(ofPolicy text: String) -> Timestamp? {
            let digits = text.map { character -> Character in
                switch character {
                case "-": "+"
                case "_": "="
                case "~": "/"
                default: character
                }
            }
            guard let bytes = Base64.decode(String(digits)), let policy = try? JSONValue.parse(bytes) else { return nil }
            let condition = policy["Statement"]?.array?.first?["Condition"]
            return condition?["DateLessThan"]?["AWS:EpochTime"]?.integer.map { Timestamp(seconds: $0) }
        }
    }
}

/// Whether a write can wait for its upstream until its address is no longer accepted.
package enum SignedWait {
    /// What an outage of which nothing is known is expected to last.
    private static let shortest = TimeSpan.minutes(5)

    /// True if the outage is likely to end before. One that has lasted for some time is as likely to last as long again as not.
    package static func isLongEnough(until end: Timestamp, awaySince start: Timestamp, now: Timestamp) -> Bool {
        end - now >= max(shortest, now - start)
    }
}
