// The immediate reply to a write that is only queued (docs/outbox.md#optimistic-replies; docs/reference/behaviour.md#optimistic-replies),
// in the form in which its API answers (docs/outbox.md#replies).
import HTTPTypes

/// The reply of a route with `offline_response: optimistic` in place of the upstream's.
package struct OptimisticReply: Hashable, Sendable {
    /// What the reply carries.
    package enum Content: Hashable, Sendable {
        case nothing
        /// The whole item with its envelope, as subsequent reads show it.
        case item(JSONValue)
        /// What the API answers to every such write.
        case fixed(String)
    }

    package var status: Int
    package var content: Content
    /// The media type of the content; nil where the API's answers have not shown it.
    package var type: String?

    /// The item; nil for a reply without it.
    package var body: JSONValue? { if case .item(let value) = content { value } else { nil } }

    package init(status: Int, content: Content, type: String? = nil) { (self.status, self.content, self.type) = (status, content, type) }

    package init(status: Int, body: JSONValue? = nil) { self.init(status: status, content: body.map { .item($0) } ?? .nothing) }

    /// Returns the reply, or nil where it cannot be computed and the reply is 202: a body that is not JSON, a PATCH of an item without a
    /// cached copy, a patch that does not apply, an action.
    /// - Parameters:
    ///   - base: the item as a read shows it before this write, nil when there is none or a dirty one.
    ///   - baseIsKnown: true if the item is known to exist without it: then a PUT answers 200 and not 201.
    ///   - form: that of the API's own answer to such a write; nil where none was seen.
    package static func decide(
        _ write: FoldedWrite, base: JSONValue?, baseIsKnown: Bool, resource: Resource, form: AnswerForm? = nil
    ) -> OptimisticReply? {
        let isCreate = !write.isItem
        if isCreate, write.id == nil { return nil }
        switch ItemFold.fold(isCreate ? nil : base, with: [write], resource: resource) {
        case .present(let body, last: _, count: _):
            let isNew = isCreate || write.method == .put && base == nil && !baseIsKnown && !resource.isSingleton
            let plain = OptimisticReply(status: isNew ? 201 : 200, body: body)
            // One form was seen: that of a PUT which creates is not that of one which replaces.
            guard let form, isCreate || (form.status == 201) == isNew else { return plain }
            return plain.as(form, item: body)
        case .deleted: return OptimisticReply(status: 204).as(form, item: base)
        case .unchanged, .dirty: return nil
        }
    }

    /// The reply in the form of the API's own; unchanged where the form needs an item that is not known.
    private func `as`(_ form: AnswerForm?, item: JSONValue?) -> OptimisticReply {
        guard let form else { return self }
        switch form.content {
        case .nothing: return OptimisticReply(status: form.status, content: .nothing)
        case .fixed(let text): return OptimisticReply(status: form.status, content: .fixed(text), type: form.type)
        case .item: return item.map { OptimisticReply(status: form.status, content: .item($0), type: form.type) } ?? self
        }
    }
}

// MARK: - Forms of answers

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
    /// True if the new item has the key that the create has given it, false if it has another; nil where no create has given one.
    package var keepsKeys: Bool?

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
        if let key = write.chosenKey, let id = write.created?.id.text { keepsKeys = key == id }
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

    // MARK: - Storing

    /// The form as it is stored: the status; then, unless the answer carried nothing else, what it carried. `+` stands for what its head
    /// names, `=` for a key that was kept, and `~` for one that was not.
    package var text: String {
        let marks = (names ? "+" : "") + (keepsKeys.map { $0 ? "=" : "~" } ?? "")
        switch content {
        case .nothing: return marks.isEmpty ? "\(status)" : "\(status) \(marks == "+" ? "names" : "nothing\(marks)")"
        case .item: return "\(status) item\(marks) \(type ?? "")"
        case .fixed(let text): return "\(status) fixed\(marks) \(type ?? "")\n\(text)"
        }
    }

    package init?(text: String) {
        let lines = text.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
        let words = lines[0].split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard let status = Int(words[0]) else { return nil }
        self.init(status: status)
        guard words.count > 1 else { return }
        names = words[1] == "names" || words[1].contains("+")
        keepsKeys = words[1].contains("=") ? true : words[1].contains("~") ? false : nil
        type = words.count > 2 && !words[2].isEmpty ? String(words[2]) : nil
        switch words[1].prefix(while: \.isLetter) {
        case "names", "nothing": break
        case "item": content = .item
        case "fixed" where lines.count == 2: content = .fixed(String(lines[1]))
        default: return nil
        }
    }

    /// The status where the answer carried nothing else.
    package var bareStatus: Int? { content == .nothing && !names ? status : nil }
}

// MARK: - What upstreams answer

/// The writes of one upstream that it answers in the same form: their method, with the declared resource and the kind of path below it, the
/// configured route, or the path; and the preference `return` (RFC 7240 §4.2).
package struct WriteRoute: Hashable, Sendable {
    /// The name under which it is stored.
    package let name: String

    /// The route with a stored name.
    package init(name: String) { self.name = name }

    package init(of request: RequestHead, plan: RoutePlan) { self.init(of: request, route: plan.route, entity: plan.entity) }

    init(of request: RequestHead, route: Route?, entity: EntityMatch?) {
        // A receiver of telemetry answers in the format of the request.
        let format = route?.kind == .telemetry ? MediaType.essence(of: request.fields).map { " \($0)" } ?? "" : ""
        let preference = request.fields.preferredReturn.map { " return=\($0)" } ?? ""
        name = "\(request.method.rawValue) \(Self.place(of: request, route: route, entity: entity))\(format)\(preference)"
    }

    private static func place(of request: RequestHead, route: Route?, entity: EntityMatch?) -> String {
        if let entity, let resource = entity.resource {
            let action = entity.action.map { "/\($0)" } ?? ""
            return resource.label + (entity.isItem && !resource.isSingleton ? "/{id}" : "") + action
        }
        // A pattern for paths of any depth covers endpoints with different answers.
        if let pattern = route?.match.split(separator: " ").last, !pattern.contains("**") { return String(pattern) }
        // Paths right below the root are no members of one collection.
        guard request.method != .post, let end = request.path.dropLast().lastIndex(of: "/"), end != request.path.startIndex else {
            return request.path
        }
        return "\(request.path[..<end])/*"
    }
}

extension HTTPFields {
    /// The longest value of a preference that makes a difference, in bytes.
    private static let preferenceLength = 32

    /// The value of the first preference `return`, in lower case (RFC 7240 §2); nil without one, and for one that is no word.
    fileprivate var preferredReturn: String? {
        for preference in self[values: .prefer].flatMap({ $0.split(separator: ",") }) {
            let parts = preference.prefix { $0 != ";" }.filter { !" \t\"".contains($0) }.lowercased().split(separator: "=")
            guard parts.first == "return" else { continue }
            guard parts.count == 2, parts[1].utf8.count <= Self.preferenceLength,
                parts[1].utf8.allSatisfy({ FieldByte.isLetter($0) || $0 == UInt8(ascii: "-") })
            else { return nil }
            return String(parts[1])
        }
        return nil
    }
}

/// The answers of one upstream, by route: the form of the newest answer to each. A route whose newest answer has a form that cannot be repeated is
/// not kept, because a queued write of that route is answered 202.
package struct EmptyAnswers: Sendable {
    /// The most routes that are kept.
    package static let limit = 1024

    /// A change that has to be stored.
    package struct Change: Hashable, Sendable {
        package var route: WriteRoute
        /// nil: the route is no longer kept.
        package var form: AnswerForm?

        package init(route: WriteRoute, form: AnswerForm?) { (self.route, self.form) = (route, form) }

        package init(route: WriteRoute, status: Int?) { self.init(route: route, form: status.map { AnswerForm(status: $0) }) }
    }

    private var forms: [WriteRoute: (form: AnswerForm, order: Int)] = [:]
    private var next = 0

    package init() {}

    /// The status of the newest answer to a route, if that carried nothing else.
    package func status(for route: WriteRoute) -> Int? { form(for: route)?.bareStatus }

    /// The form of the newest answer to a route.
    package func form(for route: WriteRoute) -> AnswerForm? { forms[route]?.form }

    /// Takes the form of the newest answer to a route; nil for one that cannot be repeated.
    /// - Returns: what has to be stored; the oldest route makes room.
    package mutating func note(_ form: AnswerForm?, for route: WriteRoute) -> [Change] {
        var form = form
        // A create without a key does not show what becomes of keys.
        if form?.keepsKeys == nil { form?.keepsKeys = forms[route]?.form.keepsKeys }
        guard forms[route]?.form != form else { return [] }
        var changes = [Change(route: route, form: form)]
        guard let form else {
            forms[route] = nil
            return changes
        }
        if forms[route] == nil, forms.count >= Self.limit, let oldest = forms.min(by: { $0.value.order < $1.value.order })?.key {
            forms[oldest] = nil
            changes.append(Change(route: oldest, form: nil))
        }
        forms[route] = (form, next)
        next += 1
        return changes
    }

    /// True if an answer of this status may carry nothing: then the length of its body decides.
    package static func mayBeEmpty(_ status: Int) -> Bool { [200, 201, 204, 205].contains(status) }

    /// What an answer to a write shows of those to the next ones.
    /// - Parameters:
    ///   - isEmpty: true if it had no content.
    ///   - rule: the declared rule of success.
    /// - Returns: nil for an answer that shows nothing, because it is no success; a status if it carried nothing else; `.some(nil)` otherwise.
    package static func shown(by answer: ResponseHead, isEmpty: Bool, rule: SuccessRule?) -> Int?? {
        guard (200...299).contains(answer.status), AnswerFailure.of(answer, body: isEmpty ? [] : nil, by: rule) == nil else { return nil }
        let isBare = answer.status == 204 || answer.status == 205 || isEmpty && mayBeEmpty(answer.status)
        return .some(isBare && !answer.namesSomething ? answer.status : nil)
    }
}

extension ResponseHead {
    /// True if an answer to a write names something that another one does not: the place of a new item, or a session.
    var namesSomething: Bool { fields.contains(.location) || fields.contains(.setCookie) }
}
