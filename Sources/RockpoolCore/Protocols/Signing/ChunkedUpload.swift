// The content of an upload that the SDKs of S3 send in signed chunks (`Content-Encoding: aws-chunked`,
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html).
package import HTTPTypes

/// Uploads in chunks with a signature each, or with a checksum after the last one.
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
