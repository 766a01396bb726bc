// The coding of stored content: which clients accept it unchanged, and the head of the decoded response (RFC 9110 §8.4, §12.5.3).
package import HTTPTypes

/// The content codings of a stored response.
package enum ContentCoding {
    /// True if the content has a coding other than `identity`.
    static func isCoded(_ fields: HTTPFields) -> Bool {
        codings(in: fields).contains { $0 != "identity" }
    }

    /// True if the client of `request` accepts the content in its stored coding.
    package static func isAccepted(_ fields: HTTPFields, by request: RequestHead) -> Bool {
        AcceptEncoding.accepts(fields.value(of: "content-encoding") ?? "", value: request.fields.value(of: "accept-encoding"))
    }

    /// True if this cache can decode the content: a complete 200 in a single coding that is among `decodable`.
    package static func canBeDecoded(_ head: ResponseHead) -> Bool { head.status == 200 && isDecodable(head.fields) }

    /// True if the content has a single coding, which is among `decodable`.
    package static func isDecodable(_ fields: HTTPFields) -> Bool { single(in: fields).map(decodable.contains) ?? false }

    /// The coding of the content in lower case; nil if it has none, or several.
    package static func single(in fields: HTTPFields) -> String? {
        let codings = codings(in: fields)
        return codings.count == 1 ? codings[0] : nil
    }

    /// The codings that can be decoded, in lower case: `br` and `zstd` where their libraries are installed.
    package static let decodable: Set<String> = {
        let found = [("br", CodingLibrary.brotli), ("zstd", CodingLibrary.zstd)].filter { $0.1 != nil }.map(\.0)
        return Set(["gzip", "x-gzip", "deflate"] + found)
    }()

    /// The head of the same response with decoded content. Fields that describe the coded bytes are removed. A strong tag becomes weak,
    /// because it still identifies the version but no longer the bytes (RFC 9110 §8.8.1). `Vary` stays.
    package static func decoded(_ head: ResponseHead) -> ResponseHead {
        var decoded = ResponseHead(status: head.status)
        for field in head.fields where !ofCodedBytes.contains(field.name.canonicalName) { decoded.fields.append(field) }
        if let tag = decoded.fields.single(.eTag), tag.hasPrefix("\"") { decoded.fields[.eTag] = "W/" + tag }
        return decoded
    }

    /// In lower case, the first applied first.
    private static func codings(in fields: HTTPFields) -> [String] {
        FieldList.members(of: fields.value(of: "content-encoding") ?? "").map { $0.lowercased() }
    }

    private static let ofCodedBytes: Set<String> = [
        "content-encoding", "content-length", "content-md5", "content-digest", "repr-digest", "digest", "accept-ranges",
    ]
}
