// The parts of a 207 response (RFC 4918 §13; docs/outbox.md#no-success).

/// The body of a 207 response: an XML document with status lines (RFC 4918 §13), or JSON with a status in each part.
enum MultiStatus {
    private static let names = ["status", "statusCode", "status_code", "httpStatus", "code"]

    /// Returns the status of the first part that failed; nil if none is known to have failed.
    static func failedPart(of body: [UInt8], isJSON: Bool) -> Int? {
        if isJSON { return (try? JSONValue.parse(body)).flatMap { failedPart(of: $0, depth: 0) } }
        return failedStatusLine(in: body)
    }

    /// Searches the arrays of the document and of the members of its objects, to a depth of three.
    private static func failedPart(of value: JSONValue, depth: Int) -> Int? {
        guard depth <= 3 else { return nil }
        switch value {
        case .array(let parts):
            for part in parts {
                if let status = failedStatus(of: part) ?? failedPart(of: part, depth: depth + 1) { return status }
            }
        case .object(let members):
            for (_, member) in members where member.array != nil || member.object != nil {
                if let status = failedPart(of: member, depth: depth + 1) { return status }
            }
        default: break
        }
        return nil
    }

    private static func failedStatus(of part: JSONValue) -> Int? {
        for name in names {
            guard let value = part[name] else { continue }
            let digits = value.string.map { $0.hasPrefix("HTTP/") ? String($0.drop { $0 != " " }.dropFirst()) : $0 }
            let status = value.integer ?? digits.flatMap { Int64($0.prefix(3)) }
            if let status, (400...599).contains(status) { return Int(status) }
        }
        return nil
    }

    /// Searches `<status>HTTP/1.1 422 …</status>` of any namespace prefix, also in a document that breaks off.
    private static func failedStatusLine(in body: [UInt8]) -> Int? {
        var failed: Int?
        try? XMLReader.read(body) { tag in
            guard !tag.isStart, tag.name == "status" else { return true }
            let words = tag.text.split(whereSeparator: \.isWhitespace)
            guard words.count > 1, words[0].hasPrefix("HTTP/"), let status = Int(words[1].prefix(3)) else { return true }
            if (400...599).contains(status) { failed = status }
            return failed == nil
        }
        return failed
    }
}
