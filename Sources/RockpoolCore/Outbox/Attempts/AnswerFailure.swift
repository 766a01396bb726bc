// Answers with a status of 2xx that are no success (docs/outbox.md#no-success), and the codings in which they can be read.
import HTTPTypes

/// The reason why a write with an answer of 2xx was not applied, or not in all its parts.
package struct AnswerFailure: Hashable, Sendable {
    /// The description for `lastError`.
    package var detail: String
    /// True if other parts of the write may have been applied (207).
    package var isPartial: Bool

    /// Creates a failure.
    package init(_ detail: String, isPartial: Bool = false) {
        self.detail = detail
        self.isPartial = isPartial
    }

    /// Judges an answer by the declared rule, and a 207 also by the status of each part (RFC 4918 §13).
    /// - Parameters:
    ///   - body: the answer's body; nil where it is not at hand.
    ///   - rule: the rule of the route or the resource; nil if none is declared.
    /// - Returns: nil if the answer is a success, if its status is not 2xx, or if its body cannot be judged.
    package static func of(_ head: ResponseHead, body: [UInt8]?, by rule: SuccessRule?) -> AnswerFailure? {
        guard (200...299).contains(head.status) else { return nil }
        if let rule, !rule.status.isEmpty, !rule.status.contains(head.status) {
            return AnswerFailure("\(head.status) is no success of this route")
        }
        guard let body, !head.fields.contains(.contentEncoding) else { return nil }
        if let failed = rule.flatMap({ $0.failure(in: body, of: head) }) { return failed }
        guard head.status == 207, let part = MultiStatus.failedPart(of: body, isJSON: MediaType.isJSON(head.fields)) else { return nil }
        return AnswerFailure("207: a part of it failed with \(part)", isPartial: true)
    }

    /// True if the rule or the status makes the body of an answer necessary.
    package static func needsBody(of head: ResponseHead, by rule: SuccessRule?) -> Bool {
        head.status == 207 || (200...299).contains(head.status) && rule?.needsBody == true
    }
}

extension SuccessRule {
    /// Returns the failure that the body shows; nil if it shows success, or if it is JSON that broke off.
    fileprivate func failure(in body: [UInt8], of head: ResponseHead) -> AnswerFailure? {
        guard let text = pointer, let pointer = JSONPointer(text), ![204, 205].contains(head.status) else { return nil }
        let isJSON = MediaType.isJSON(head.fields)
        let document = try? JSONValue.parse(body)
        if document == nil, isJSON { return nil }
        let member = document.flatMap(pointer.get)
        let isAbsent = member.map { $0.isNull || $0.array?.isEmpty == true } ?? true
        if let absent, absent != isAbsent {
            return AnswerFailure("\(head.status): the answer has \(absent ? "" : "no ")\(text)")
        }
        if let equals, member != equals {
            return AnswerFailure("\(head.status): \(text) of the answer is not \(String(decoding: equals.serialized(), as: UTF8.self))")
        }
        return nil
    }
}

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

// The codings that requests ask for where their answers are read (RFC 9110 §12.5.3).
extension RequestHead {
    /// Requests an answer without coding, because it is read (RFC 9110 §12.5.3). A signature of the request may cover the field.
    package mutating func acceptPlain() {
        if SignedRequest(self) == nil { fields[.acceptEncoding] = "identity" }
    }

    /// Requests an answer to a live write without coding where its body is read: by a rule of success, as the representation of an item, or
    /// for errors with status 200.
    package mutating func acceptReadable(_ plan: RoutePlan) {
        if plan.success?.needsBody == true || plan.entity?.resource != nil || plan.route?.kind == .graphql { acceptPlain() }
    }

    /// Requests a representation in a coding that can be decoded, so that queued writes can be folded into it: the client's other codings are
    /// left out. A signature of the request may cover the field.
    package mutating func acceptDecodable() {
        guard let value = fields[.acceptEncoding], SignedRequest(self) == nil else { return }
        let members = FieldList.members(of: value).filter { member in
            let name = member.prefix { $0 != ";" && $0 != " " }.lowercased()
            return name == "identity" || ContentCoding.decodable.contains(name)
        }
        fields[.acceptEncoding] = members.isEmpty ? "identity" : members.joined(separator: ", ")
    }
}
