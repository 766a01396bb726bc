// Answers with a status of 2xx that are no success (docs/outbox.md#no-success).
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
