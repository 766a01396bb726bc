// AWS Signature Version 4 for requests that are signed anew, and S3's uploads and copies
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html; docs/reference/configuration.md#upstreams,
// `sign`).
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

    /// The reason why a request is not signed anew.
    package enum Doubt: String, CaseIterable, Sendable {
        /// No signature of Version 4 with this key id, or not the one that this key makes.
        case wrong = "its signature was not made with the key of sign.sigv4"
        /// S3 would not accept it either, and who has recorded it could send it again for ever.
        case outOfTime = "its signature is not of the last 15 minutes"
        /// For another region or service than the rule's, or of another day than its date.
        case scope = "its signature is for another region or service than sign.sigv4"
        /// `Host` or a field `X-Amz-*`, such as `X-Amz-Acl`, is not among the fields that the client has signed.
        case unsignedField = "a field X-Amz-* of it, or its Host, is not signed"
    }

    /// Returns why the request's own signature gives no right to one of this key; nil if it does.
    /// - Parameter authorities: The values of `Host` that the client may have used.
    package func doubt(of request: RequestHead, authorities: [String], at moment: Timestamp) -> Doubt? {
        guard let authorization = request.fields.single(.authorization), let signed = SignedRequest(request), signed.keyID == rule.keyID,
            let scope = Self.parameter("Credential", in: authorization)?.split(separator: "/", maxSplits: 1).last,
            let names = Self.signedNames(authorization), let signature = Self.parameter("Signature", in: authorization),
            let date = request.fields.value(of: "x-amz-date"), let expiresAt = signed.expiresAt
        else { return .wrong }
        guard scope.utf8.elementsEqual(self.scope(of: date).utf8) else { return .scope }
        let distance = moment - (expiresAt - SignedRequest.sigV4Lifetime)
        guard distance <= SignedRequest.sigV4Lifetime, .zero - distance <= SignedRequest.sigV4Lifetime else { return .outOfTime }
        let isSigned = { (name: String) in names.contains { $0.utf8.elementsEqual(name.utf8) } }
        guard isSigned("host"), request.fields.allSatisfy({ !Self.isOwn($0.name) || isSigned($0.name.canonicalName) }) else {
            return .unsignedField
        }
        let isOfKey = authorities.contains { authority in
            self.signature(request, authority: authority, names: names, date: date, scope: String(scope)).utf8.elementsEqual(signature.utf8)
        }
        return isOfKey ? nil : .wrong
    }

    /// True for the fields of AWS, which decide what a request does: all of them are signed, as S3 demands.
    private static func isOwn(_ name: HTTPField.Name) -> Bool { name.canonicalName.hasPrefix("x-amz-") }

    private static func signedNames(_ authorization: String) -> [String]? {
        parameter("SignedHeaders", in: authorization)?.split(separator: ";").map { String($0) }
    }

    /// - Parameter date: The value of `X-Amz-Date`.
    private func scope(of date: String) -> String { "\(date.prefix(8))/\(rule.region)/\(rule.service)/aws4_request" }

    /// Returns the request with a signature of this moment in place of its own.
    /// - Parameter authority: The `Host` with which it is sent.
    package func signed(_ request: RequestHead, authority: String, at moment: Timestamp) -> RequestHead {
        var request = request
        let date = Self.basic(moment)
        let scope = scope(of: date)
        let clients = request.fields[.authorization].flatMap(Self.signedNames)
        for (name, value) in [("X-Amz-Date", date as String?), ("X-Amz-Security-Token", nil)] {
            if let name = HTTPField.Name(name) { request.fields[name] = value }
        }
        request.fields[.authorization] = nil
        // A field that the client has not signed stays unsigned.
        let own = request.fields.map(\.name.canonicalName).filter { name in
            let mayBeSigned = ["content-type", "content-md5"].contains(name) || name.hasPrefix("x-amz-")
            return name == "x-amz-date" || mayBeSigned && clients?.contains(name) != false
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

/// Uploads in chunks with a signature each, or with a checksum after the last one (`Content-Encoding: aws-chunked`,
/// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html).
package enum ChunkedUpload {
    /// True if the body's bytes are not the object's.
    package static func isUsed(_ fields: HTTPFields) -> Bool {
        fields.value(of: "x-amz-content-sha256")?.hasPrefix("STREAMING-") == true
            || fields[.contentEncoding].map { FieldList.members(of: $0.lowercased()).contains("aws-chunked") } == true
    }

    /// Returns the object's bytes; the body itself if it is not in this form.
    package static func content(of body: [UInt8], _ fields: HTTPFields) -> [UInt8] {
        guard isUsed(fields) else { return body }
        var (content, rest) = ([UInt8](), body[...])
        while let end = rest.firstRange(of: [13, 10]) {
            let size = rest[..<end.lowerBound].prefix { $0 != UInt8(ascii: ";") }
            guard let count = Int(String(decoding: size, as: UTF8.self), radix: 16), count >= 0,
                rest.count - end.upperBound + rest.startIndex >= count
            else { return body }
            guard count > 0 else { return content }
            content += rest[end.upperBound..<(end.upperBound + count)]
            rest = rest[(end.upperBound + count)...]
            if rest.starts(with: [13, 10]) { rest = rest.dropFirst(2) }
        }
        return body
    }
}

extension HTTPFields {
    /// Turns the fields of an upload in chunks into those of its content.
    /// - Parameter digest: The SHA-256 of the content in hexadecimal.
    package mutating func becomeWhole(digest: String) {
        self = HTTPFields(filter { !["x-amz-decoded-content-length", "x-amz-trailer", "content-length"].contains($0.name.canonicalName) })
        for field in self where field.name.canonicalName == "x-amz-content-sha256" { self[field.name] = digest }
        self[.contentEncoding] = withoutChunkedCoding
    }

    /// The content codings apart from that of the upload.
    private var withoutChunkedCoding: String? {
        let rest = self[.contentEncoding].map { FieldList.members(of: $0).filter { $0.lowercased() != "aws-chunked" } } ?? []
        return rest.isEmpty ? nil : rest.joined(separator: ", ")
    }

    /// The fields of a request that describe its content, and the metadata of an S3 object.
    package var ofWrittenContent: HTTPFields {
        var fields = HTTPFields()
        for field in self where Self.kept.contains(field.name.canonicalName) || field.name.canonicalName.hasPrefix("x-amz-meta-") {
            fields.append(field)
        }
        fields[.contentEncoding] = fields.withoutChunkedCoding
        return fields
    }

    private static let kept: Set<String> = ["content-type", "content-encoding", "content-language", "content-disposition"]
}

/// A PUT that copies an object (https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html; docs/outbox.md#s3). Unlike other
/// uploads it is answered with a document.
package enum CopiedObject {
    package static func isMade(by request: RequestHead) -> Bool {
        request.method == .put && request.fields.value(of: "x-amz-copy-source") != nil
    }

    /// - Parameter etag: a quoted tag.
    package static func document(etag: String, at moment: Timestamp) -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <CopyObjectResult><LastModified>\(RFC3339.format(moment))</LastModified><ETag>\(etag)</ETag></CopyObjectResult>
        """
    }
}
