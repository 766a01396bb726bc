// URLs whose query permits a request for a time: AWS Signature Version 4 and 2, Google Cloud Storage, the shared access signatures of
// Azure, and CloudFront (docs/caching.md#presigned-urls).

/// A request's target with what signs it.
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
