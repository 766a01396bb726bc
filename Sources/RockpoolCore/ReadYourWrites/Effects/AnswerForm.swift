// The form in which an API answers the writes of one kind: the form of the reply that stands in for it (docs/outbox.md#optimistic-replies).
import HTTPTypes

/// The status of an answer, and what its body is.
package struct AnswerForm: Hashable, Sendable {
    /// What the body holds.
    package enum Content: Hashable, Sendable {
        case nothing
        /// The representation of the write's entity.
        case item
        /// The same for every write.
        case fixed(String)
    }

    package var status: Int
    package var content: Content
    /// The type of the body; nil without one.
    package var type: String?
    /// True if the answer names something in its head: the place of a new item, or a session.
    package var names = false

    package init(status: Int, content: Content = .nothing, type: String? = nil, names: Bool = false) {
        (self.status, self.content, self.type, self.names) = (status, content, type, names)
    }

    /// The largest body in bytes that may be the same for every write.
    package static let fixedLimit = 1024

    /// The form of an answer to a write of a declared resource; nil for one that was no success, or whose body is neither the entity nor the same
    /// for every write.
    package init?(_ write: AnsweredWrite) {
        guard let entity = write.entity, let resource = entity.resource, write.evidence == .answer, write.outcome == .applied,
            [200, 201, 204, 205].contains(write.answer.status)
        else { return nil }
        let head = write.answer
        self.init(status: head.status, names: head.namesSomething)
        if head.status == 204 || head.status == 205 || write.answerBody?.isEmpty == true { return }
        guard let body = write.answerBody, MediaType.isJSON(head.fields), let value = write.answerJSON else { return nil }
        type = head.fields[.contentType]
        if Self.shows(value, write, resource) {
            content = .item
        } else if body.count <= Self.fixedLimit, !body.contains(where: \.isDigit), let text = String(validating: body, as: UTF8.self) {
            // Ids, times and counts have digits: what has none says the same of the next write.
            content = .fixed(text)
        } else {
            return nil
        }
    }

    /// The form of an answer to a write of a telemetry route: its status, and its body if that is a short text that names nothing of this write.
    /// Nil for one that was no success, or that tells of this write alone.
    package init?(telemetry head: ResponseHead, body: [UInt8]) {
        guard (200...299).contains(head.status), !head.namesSomething else { return nil }
        self.init(status: head.status)
        guard head.status != 204, head.status != 205, !body.isEmpty else { return }
        // Ids, times and counts have digits; a code of 0 is none of them.
        guard body.count <= Self.fixedLimit, !body.contains(where: { $0.isDigit && $0 != UInt8(ascii: "0") }),
            let text = String(validating: body, as: UTF8.self)
        else { return nil }
        (content, type) = (.fixed(text), head.fields[.contentType])
    }

    private static func shows(_ value: JSONValue, _ write: AnsweredWrite, _ resource: Resource) -> Bool {
        guard write.addressesEntity, let entity = write.entity else { return false }
        let shape = RepresentationShape(resource)
        let folded = FoldedWrite(
            sequence: 1, method: write.request.method, isItem: entity.isItem, id: entity.id, body: write.body ?? [])
        return WriteEffect.describes(shape.unwrapped(value), of: folded, base: nil, shape: shape)
    }

    // MARK: storing

    /// The form as it is stored: the status; then, unless the answer carried nothing else, what it carried.
    package var text: String {
        if content == .nothing { return names ? "\(status) names" : "\(status)" }
        let word = content == .item ? "item" : "fixed"
        let body: String = if case .fixed(let text) = content { "\n" + text } else { "" }
        return "\(status) \(word)\(names ? "+" : "") \(type ?? "")\(body)"
    }

    package init?(text: String) {
        let lines = text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
        let words = lines[0].split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard let status = Int(words[0]) else { return nil }
        self.init(status: status)
        guard words.count > 1 else { return }
        names = words[1] == "names" || words[1].hasSuffix("+")
        type = words.count > 2 && !words[2].isEmpty ? String(words[2]) : nil
        switch words[1].prefix(while: { $0 != "+" }) {
        case "names": break
        case "item": content = .item
        case "fixed" where lines.count == 2: content = .fixed(String(lines[1]))
        default: return nil
        }
    }

    /// The status where the answer carried nothing else.
    package var bareStatus: Int? { content == .nothing && !names ? status : nil }
}
