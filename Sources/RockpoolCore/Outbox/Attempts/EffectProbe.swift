// The probe request for the effect of a write, and the evaluation of its answer (docs/outbox.md#uncertain *uncertain*, §2.4).
import HTTPTypes

/// Probes for the effect of one operation with one safe request.
///
/// A single probe cannot prove that an effect is *not* there: the sent request may still be applied. Therefore `absent` is returned only
/// where a condition guards the resend.
package struct EffectProbe: Sendable {
    private let operation: RequestHead
    private let body: JSONValue?
    private let resource: Resource
    private let templates: ResourceTemplates
    private let isCreate: Bool
    /// The probe request, without a key.
    package let question: RequestHead

    /// Nil for writes without a distinguishable effect: actions, and bodies that are not JSON.
    /// - Parameter operation: the request as it was sent.
    package init?(_ operation: RequestHead, body: [UInt8], resource: Resource) {
        self.operation = operation
        self.resource = resource
        self.body = try? JSONValue.parse(body)
        templates = ResourceTemplates(resource)
        guard let match = templates.match(target: operation.target) else { return nil }
        isCreate = !match.isItem
        guard isCreate ? operation.method == .post && self.body?.object != nil : operation.method != .post else { return nil }
        var look = operation.look
        if templates.isOfRows, match.isItem { look.target = match.path }
        question = look
    }

    /// - Parameter isKnown: true for an item that was in the collection before, or was created by another operation.
    package func judge(_ head: ResponseHead, body: [UInt8], isKnown: (String) -> Bool) -> ObservedEffect {
        let answer = try? JSONValue.parse(body)
        if isCreate { return head.status == 200 ? answer.map { created(in: $0, isKnown) } ?? .unknown : .unknown }
        switch (operation.method, head.status) {
        case (.delete, 404), (.delete, 410): return .present(nil)
        case (.put, 200), (.patch, 200):
            if let theirs = answer.flatMap(item), shows(theirs) { return .present(nil) }
        default: break
        }
        return isStillGuarded(head) ? .absent : .unknown
    }

    /// True if the state that the write's condition names is still current: a resend of the same request can then succeed once at most.
    private func isStillGuarded(_ head: ResponseHead) -> Bool {
        guard let condition = operation.fields[.ifMatch].flatMap({ EntityTag($0) }),
            let current = head.fields[.eTag].flatMap({ EntityTag($0) })
        else { return false }
        return head.status == 200 && !condition.isWeak && !current.isWeak && condition.names(current)
    }

    /// True if an item matches the write's result: it has every member that the write sets.
    private func shows(_ theirs: JSONValue) -> Bool {
        guard let mine = body.flatMap(item) else { return false }
        if operation.method == .put { return Self.contains(theirs, mine: mine, except: managed) }
        let type = operation.fields[.contentType]?.lowercased() ?? ""
        guard !type.contains("json-patch"), mine.object != nil else { return false }
        return RepresentationShape(resource).merged(theirs, with: mine) == theirs
    }

    private func created(in list: JSONValue, _ isKnown: (String) -> Bool) -> ObservedEffect {
        guard let items = JSONPointer(resource.items)?.get(in: list)?.array, let mine = body.flatMap(item) else { return .unknown }
        let shape = RepresentationShape(resource)
        let candidates = items.map(shape.listed).compactMap { item -> ServerID? in
            guard let id = shape.serverID(of: item), !isKnown(id.text), Self.contains(item, mine: mine, except: managed) else {
                return nil
            }
            return id
        }
        guard candidates.count == 1, let id = candidates.first else { return .unknown }
        return .present(ServerMapping(id: id, url: operation.origin.url + id.itemTarget(below: operation, templates: templates)))
    }

    /// Returns the object within its envelope.
    private func item(in value: JSONValue) -> JSONValue? { RepresentationShape(resource).opened(value) ?? value }

    /// Members that the server assigns: a client's values for them prove nothing.
    private var managed: Set<String> {
        let pointers = [resource.id, resource.version == "etag" ? nil : resource.version, resource.updatedAt].compactMap { $0 }
        return Set(pointers.compactMap { JSONPointer($0)?.tokens }.filter { $0.count == 1 }.compactMap(\.first))
    }

    private static func contains(_ theirs: JSONValue, mine: JSONValue, except managed: Set<String>) -> Bool {
        guard let mine = mine.object, let theirs = theirs.object else { return theirs == mine }
        return mine.allSatisfy { managed.contains($0.0) || theirs[$0.0] == $0.1 }
    }

    /// Returns the ids of a collection's items; nil when the body is not a collection.
    package static func ids(in body: [UInt8], resource: Resource) -> Set<String>? {
        guard let list = try? JSONValue.parse(body), let items = JSONPointer(resource.items)?.get(in: list)?.array else { return nil }
        let shape = RepresentationShape(resource)
        return Set(items.compactMap { shape.idText(in: shape.listed($0)) })
    }
}

extension RequestHead {
    /// A GET of the write's target, without its conditions and its body, and in the identity coding, which leaves ETags strong
    /// (docs/outbox.md#detection).
    package var look: RequestHead {
        var question = self
        question.method = .get
        question.target = path
        for name in [HTTPField.Name.ifMatch, .ifNoneMatch, .ifUnmodifiedSince, .contentType, .contentEncoding, .contentLength, .expect] {
            question.fields[name] = nil
        }
        question.fields[.accept] = "application/json, */*;q=0.1"
        question.fields[.acceptEncoding] = "identity"
        return question
    }
}

/// The presence of an operation's effect at the upstream.
package enum ObservedEffect: Hashable, Sendable {
    /// The effect is present; for a create, with the created entity's mapping.
    case present(ServerMapping?)
    /// The effect is absent and can no longer occur: the sent request had a condition that no longer holds.
    case absent
    /// The effect cannot be determined, or not yet.
    case unknown
}
