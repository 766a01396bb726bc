// Signs requests by AWS Signature Version 4 (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html;
// docs/reference/configuration.md#upstreams, `sign`).
package import HTTPTypes

/// Computes signatures with one key.
package struct SigV4Signer: Sendable {
    private let rule: SigV4Rule
    private let secret: String
    private let digest: @Sendable ([UInt8]) -> [UInt8]
    private let code: @Sendable (_ message: [UInt8], _ key: [UInt8]) -> [UInt8]

    /// - Parameters:
    ///   - digest: Returns the SHA-256 of bytes.
    ///   - code: Returns the HMAC-SHA256 of a message.
    package init(
        _ rule: SigV4Rule, secret: String, digest: @escaping @Sendable ([UInt8]) -> [UInt8],
        code: @escaping @Sendable (_ message: [UInt8], _ key: [UInt8]) -> [UInt8]
    ) {
        (self.rule, self.secret, self.digest, self.code) = (rule, secret, digest, code)
    }

    private static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    /// True if the request's own signature was made with this key.
    /// - Parameter authority: The `Host` that the client used.
    package func verifies(_ request: RequestHead, authority: String) -> Bool {
        guard let authorization = request.fields.single(.authorization), SignedRequest(request)?.keyID == rule.keyID,
            let scope = Self.parameter("Credential", in: authorization)?.split(separator: "/", maxSplits: 1).last,
            let names = Self.parameter("SignedHeaders", in: authorization),
            let signature = Self.parameter("Signature", in: authorization),
            let date = request.fields.value(of: "x-amz-date")
        else { return false }
        let computed = self.signature(
            request, authority: authority, names: names.split(separator: ";").map { String($0) }, date: date, scope: String(scope))
        return computed.utf8.elementsEqual(signature.utf8)
    }

    /// Returns the request with a signature of this moment in place of its own.
    /// - Parameter authority: The `Host` with which it is sent.
    package func signed(_ request: RequestHead, authority: String, at moment: Timestamp) -> RequestHead {
        var request = request
        let (date, scope) = (Self.basic(moment), "\(Self.basic(moment).prefix(8))/\(rule.region)/\(rule.service)/aws4_request")
        for (name, value) in [("X-Amz-Date", date as String?), ("X-Amz-Security-Token", nil)] {
            if let name = HTTPField.Name(name) { request.fields[name] = value }
        }
        request.fields[.authorization] = nil
        let own = request.fields.map(\.name.canonicalName).filter {
            ["content-type", "content-md5"].contains($0) || $0.hasPrefix("x-amz-")
        }
        let names = Set(own + ["host"]).sorted()
        let signature = signature(request, authority: authority, names: names, date: date, scope: scope)
        request.fields[.authorization] =
            "AWS4-HMAC-SHA256 Credential=\(rule.keyID)/\(scope), SignedHeaders=\(names.joined(separator: ";")), Signature=\(signature)"
        return request
    }

    /// True if a signature of the head is enough: the chunks of the body have none of their own.
    package static func coversBody(_ fields: HTTPFields) -> Bool {
        fields.value(of: "x-amz-content-sha256")?.hasPrefix("STREAMING-AWS4") != true
    }

    private func signature(_ request: RequestHead, authority: String, names: [String], date: String, scope: String) -> String {
        let headers = names.map { name in
            let values = name == "host" ? [authority] : request.fields.filter { $0.name.canonicalName == name }.map(\.value)
            return name + ":" + values.map(Self.collapsed).joined(separator: ",") + "\n"
        }
        let path = String(request.path)
        let query = request.target.utf8.count > path.utf8.count ? String(request.target.dropFirst(path.count + 1)) : ""
        // Services other than S3 sign a path whose percent signs are encoded again.
        let canonical = [
            request.method.rawValue, rule.service == "s3" ? path : path.replacing("%", with: "%25"), Self.canonical(query: query),
            headers.joined(), names.joined(separator: ";"), request.fields.value(of: "x-amz-content-sha256") ?? Self.emptyHash,
        ].joined(separator: "\n")
        let text = ["AWS4-HMAC-SHA256", date, scope, Self.hex(digest(Array(canonical.utf8)))].joined(separator: "\n")
        let key = scope.split(separator: "/").reduce(Array("AWS4\(secret)".utf8)) { code(Array($1.utf8), $0) }
        return Self.hex(code(Array(text.utf8), key))
    }

    private static func canonical(query: String) -> String {
        // By name, then by value: the `=` between them comes before any other character.
        let order = { (parameter: String) in parameter.utf8.map { $0 == UInt8(ascii: "=") ? 0 : $0 } }
        return query.split(separator: "&").map { $0.contains("=") ? String($0) : "\($0)=" }
            .sorted { order($0).lexicographicallyPrecedes(order($1)) }.joined(separator: "&")
    }

    /// A field's value with single spaces.
    private static func collapsed(_ value: String) -> String { value.split(separator: " ").joined(separator: " ") }

    /// A parameter of the field; the names of the signed fields are separated by semicolons.
    private static func parameter(_ name: String, in authorization: String) -> String? {
        let members = authorization.drop { $0 != " " }.split(separator: ",").map { FieldList.trimmed($0) }
        return members.first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// `20130524T000000Z`.
    private static func basic(_ moment: Timestamp) -> String {
        RFC3339.format(moment).prefix(19).filter { $0 != "-" && $0 != ":" } + "Z"
    }
}
