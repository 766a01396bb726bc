// The media types of bodies that may wait (docs/outbox.md#never-queued).
import HTTPTypes

/// The rule that decides by its media type whether a body may be stored and sent later.
enum WaitingType {
    /// True if a body of this type may wait.
    ///
    /// POST and PATCH have the meaning of their body. It may be a document of an API (JSON), a form, a patch, a text or a medium; any other
    /// type of `application` and of `multipart` belongs to a protocol, whose client needs the answer. Every other method says itself what it
    /// does, above all PUT, which stores its body as it is: that may be a file of any type.
    /// - Parameters:
    ///   - type: `type/subtype` in lower case. A text without a slash counts as no type.
    ///   - root: the parameter `type` of `multipart/related` (RFC 2387 §3.1), the type of the part that says what the whole is.
    static func mayWait(_ type: String, by method: HTTPRequest.Method, root: String? = nil) -> Bool {
        guard let slash = type.firstIndex(of: "/") else { return true }
        if calls.contains(type) || callPrefixes.contains(where: { type.hasPrefix($0) }) { return false }
        guard method == .post || method == .patch else { return true }
        let subtype = type[type.index(after: slash)...]
        switch type[..<slash] {
        case "application": return isDocument(subtype) || isPatch(subtype) || subtype == "x-www-form-urlencoded"
        case "multipart":
            return subtype == "form-data" || subtype == "related" && root.map { mayWait($0.lowercased(), by: method) } != false
        default: return true
        }
    }

    /// True for JSON, and for JSON in lines.
    private static func isDocument(_ subtype: Substring) -> Bool {
        subtype.hasSuffix("+json") || ["json", "x-json", "ndjson", "x-ndjson", "jsonl", "json-seq"].contains(subtype)
    }

    /// True for `json-patch+json`, `apply-patch+yaml`, `xml-patch+xml` and any other with that word.
    private static func isPatch(_ subtype: Substring) -> Bool {
        subtype.split { !$0.isLetter }.contains("patch")
    }

    /// Texts and kinds of JSON that are calls: the client needs the answer, or has signed the request for this moment (ACME, RFC 8555 §6.2).
    private static let calls: Set<String> = [
        "application/jose+json", "application/vnd.git-lfs+json", "application/vnd.elasticsearch+json", "text/x-gwt-rpc",
        "message/ohttp-req", "message/ohttp-chunked-req",
    ]
    /// With the encoding behind it: `application/grpc-web+json`, `application/connect+json`.
    private static let callPrefixes = ["application/grpc", "application/connect+"]
}

/// A parameter of a media type.
enum MediaTypeParameter {
    /// The value of a parameter without its quotes (RFC 9110 §5.6.6); nil if there is none, or an empty one.
    /// - Parameters:
    ///   - name: in lower case.
    ///   - value: the value of the field.
    static func named(_ name: String, in value: String) -> String? {
        for part in value.split(separator: ";").dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, FieldList.trimmed(pair[0]).lowercased() == name else { continue }
            let text = FieldList.trimmed(pair[1]).filter { $0 != "\"" }
            return text.isEmpty ? nil : text
        }
        return nil
    }
}
