// What an upstream answers to writes: the form of the reply to the next one that is queued (docs/outbox.md#replies).
import HTTPTypes

/// The writes of one upstream that it answers in the same form: their method, with the declared resource and the kind of path below it, the
/// configured route, or the path.
package struct WriteRoute: Hashable, Sendable {
    /// The name under which it is stored.
    package let name: String

    /// The route with a stored name.
    package init(name: String) { self.name = name }

    package init(of request: RequestHead, plan: RoutePlan) { self.init(of: request, route: plan.route, entity: plan.entity) }

    init(of request: RequestHead, route: Route?, entity: EntityMatch?) {
        // A receiver of telemetry answers in the format of the request.
        let format = route?.kind == .telemetry ? MediaType.essence(of: request.fields).map { " \($0)" } ?? "" : ""
        name = "\(request.method.rawValue) \(Self.place(of: request, route: route, entity: entity))\(format)"
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
