// A write that its upstream has answered, and what its answer shows about the entity (docs/outbox.md#effects; RFC 9110 §6.4.2, §9.3, §15).
import HTTPTypes

/// One write with its answer, sent live or delivered from the outbox.
package struct AnsweredWrite: Sendable {
    /// The request as it was sent, with the upstream's ids.
    package var request: RequestHead
    /// The request's body; nil where it is not at hand, because it was streamed.
    package var body: [UInt8]?
    package var answer: ResponseHead
    /// The answer's body; nil where it is not at hand, because it was streamed or is too large.
    package var answerBody: [UInt8]? { didSet { answerJSON = Self.json(answerBody) } }
    /// The answer's body as JSON; nil if it is none.
    package private(set) var answerJSON: JSONValue?
    /// The entity of the request; nil if it could not be determined.
    package var entity: EntityMatch?
    /// The declared condition of success; nil without one.
    package var success: SuccessRule?
    /// True if the collection's ids are known to be numbers, as `ServerID.inAnswer` uses it.
    package var idsAreNumbers = false
    /// What shows the entity's state after the write.
    package var evidence = Evidence.answer

    /// What shows the state of an entity after a write.
    package enum Evidence: Hashable, Sendable {
        /// The answer, or the request where the answer is no representation.
        case answer
        /// A read of the entity after the write, which stands in for an answer that was lost.
        case read
        /// Nothing: the answer was lost, and the entity could not be read.
        case nothing
    }

    /// Creates the record of an answered write.
    package init(request: RequestHead, body: [UInt8]?, answer: ResponseHead, answerBody: [UInt8]?, entity: EntityMatch? = nil) {
        self.request = request
        self.body = body
        self.answer = answer
        self.answerBody = answerBody
        answerJSON = Self.json(answerBody)
        self.entity = entity
    }

    private static func json(_ body: [UInt8]?) -> JSONValue? { body.flatMap { try? JSONValue.parse($0) } }

    /// The kinds of effect that an answer reports.
    package enum Outcome: Hashable, Sendable {
        /// The upstream refused the write: nothing has changed.
        case none
        /// The upstream refused a part of the write (207), or the state after it is not known: copies are older than it.
        case partial
        /// The upstream has applied the write.
        case applied
        /// The upstream has nothing under this URL.
        case absent
    }

    /// Returns what the status says about the entity (RFC 9110 §15). A redirect other than 303 moves the request elsewhere.
    package var outcome: Outcome {
        if evidence == .nothing { return .partial }
        if evidence == .answer, let failure = AnswerFailure.of(answer, body: answerBody, by: success) {
            return failure.isPartial ? .partial : .none
        }
        return switch answer.status {
        case 200...299, 303: .applied
        case 404 where request.method != .post, 410 where request.method != .post: .absent
        default: .none
        }
    }

    /// True if the answer to a logout says that the session has ended: a success, or a redirect to another page.
    package var endsSession: Bool { outcome == .applied || answer.status == 302 }

    /// True if the target is the entity itself, not an action or a path below it.
    package var addressesEntity: Bool { entity?.resource == nil || entity?.action == nil }

    /// True if the body of a PUT is the new content of its target, neither a part of it nor a copy that the upstream makes of another object.
    package var setsItsBody: Bool {
        !request.fields.contains(.contentRange) && !CopiedObject.isMade(by: request)
    }

    /// The answer's body as JSON; nil if it is not JSON, or the status says that it is no representation.
    package var answerValue: JSONValue? {
        guard [200, 201].contains(answer.status), MediaType.isJSON(answer.fields), !answer.fields.contains(.contentEncoding) else {
            return nil
        }
        // PostgREST answers with the rows that were written.
        let isOfRows = entity?.resource?.profile == .postgrest
        return answerJSON.flatMap { $0.object != nil || isOfRows && $0.array != nil ? $0 : nil }
    }

    /// True if the answer's body carries the id of the request's entity.
    package var answersWithEntity: Bool {
        guard let resource = entity?.resource, let id = entity?.id, let value = answerValue else { return false }
        let shape = RepresentationShape(resource)
        let object = shape.unwrapped(value)
        return resource.isSingleton ? object.object != nil : shape.idText(in: object) == id
    }

    /// True if the answer declares that its body is the current representation of the target (RFC 9110 §6.4.2).
    package var answersWithTarget: Bool {
        guard [200, 201].contains(answer.status), let location = answer.fields.single(.contentLocation) else { return false }
        return URIReference.resolve(location, origin: request.origin, target: request.target) == request.url
    }

    /// The key that the body of a create gives its item; nil where it gives none, and for any other write.
    var chosenKey: String? {
        guard request.method == .post, let entity, !entity.isItem, entity.action == nil, let resource = entity.resource else { return nil }
        return Self.json(body).flatMap { resource.key(in: $0) }
    }

    /// The URL of the item that a create made: the answer's `Location` within the origin, else the place of the id in its body. Nil for
    /// another write.
    package var created: ServerMapping? {
        guard outcome == .applied, request.method == .post, entity?.action == nil, entity?.isItem != true else { return nil }
        guard answerBody != nil || answer.fields.contains(.location) else { return nil }
        return ServerID.inAnswer(answer, json: answerJSON, to: request, resource: entity?.resource, idsAreNumbers: idsAreNumbers)
    }
}

// Whether the answer to a write describes the write's entity (docs/outbox.md#no-success).
extension AnsweredWrite {
    /// True if the answer is a JSON object that has neither the entity's id nor the members that were written, so that it is delivered with a
    /// warning and never becomes the copy. An action may answer anything, and a declared rule of success explains every answer.
    package var isForeign: Bool {
        guard success == nil, outcome == .applied, let resource = entity?.resource, addressesEntity, let body, let answer = answerValue,
            [.post, .put, .patch].contains(request.method)
        else { return false }
        let type = JSONBodyType(request.fields[.contentType])
        guard type != .other, type != .jsonPatch else { return false }
        let shape = RepresentationShape(resource)
        let isItem = entity?.isItem == true
        let write = FoldedWrite(
            sequence: 1, method: request.method, isItem: isItem, id: isItem ? entity?.names { _, _ in nil }.id : nil, body: body)
        return !WriteEffect.describes(shape.unwrapped(answer), of: write, base: nil, shape: shape)
    }
}

extension Resource {
    /// Returns the key that the body of a create gives its item; nil where it gives none. What clients send for "none yet" is none: an empty
    /// text, zero, a negative number.
    package func key(in body: JSONValue) -> String? {
        let shape = RepresentationShape(self)
        guard let id = shape.serverID(of: shape.object(ofWritten: shape.unwrapped(body))), ServerID.isAcceptable(id.text),
            LocalID(id.text) == nil, !id.isNumber || Int64(id.text).map({ $0 > 0 }) == true
        else { return nil }
        return id.text
    }
}

// MARK: - The id in an answer

// The id in an upstream's answer to a create: from `Location` first, then from the body (docs/outbox.md#local-ids; RFC 9110 §10.2.2).
extension ServerID {
    /// The maximum length of an id in bytes; a longer value is not accepted.
    package static let lengthLimit = 1024

    /// Returns the created entity's id and its absolute URL without a query. Nil when the answer has no id: then the caller probes, or the
    /// operation is dead(unmapped).
    ///
    /// For a declared resource: the id in the path of `Location`, by the item template and at the same origin only; otherwise the string or
    /// integer at the resource's id pointer within its envelope. For an undeclared one: the segment of a `Location` directly below the
    /// request's path, otherwise member `id` of a JSON object. `request` is the request as it was sent.
    /// - Parameters:
    ///   - json: the body; nil if it is no JSON.
    ///   - idsAreNumbers: true if the collection's ids are numbers: then one that only `Location` shows is one, if it reads as one.
    package static func inAnswer(
        _ head: ResponseHead, json: JSONValue?, to request: RequestHead, resource: Resource?, idsAreNumbers: Bool = false
    ) -> ServerMapping? {
        let templates = resource.map(ResourceTemplates.init)
        let written = json.flatMap { ServerID.written(in: $0, resource: resource) }
        if let target = head.fields.single(.location).flatMap({ sameOriginTarget(in: $0, from: request) }),
            let (text, path) = item(at: target, below: request, templates: templates), isAcceptable(text)
        {
            let isNumber = written.map { $0 == ServerID(text: text, isNumber: true) } ?? (idsAreNumbers && isInteger(text))
            return ServerMapping(id: ServerID(text: text, isNumber: isNumber), url: request.origin.url + path)
        }
        guard let written else { return nil }
        return ServerMapping(id: written, url: request.origin.url + written.itemTarget(below: request, templates: templates))
    }

    /// The id of the object in an answer; nil if it has none.
    private static func written(in json: JSONValue, resource: Resource?) -> ServerID? {
        guard let resource else { return JSONPointer("/id")?.get(in: json).flatMap(ServerID.init) }
        let shape = RepresentationShape(resource)
        // An API that answers without its envelope shows nothing that is known to be the id.
        guard let object = shape.opened(json) else { return nil }
        guard shape.ids.count > 1 else { return shape.ids.first?.get(in: object).flatMap(ServerID.init) }
        return shape.idText(in: object).map { ServerID(text: $0) }
    }

    /// Accepts a JSON string, or a number written as an integer.
    private init?(_ value: JSONValue) {
        switch value {
        case .string(let text): self.init(text: text)
        case .number(let number):
            guard Self.isInteger(number.literal) else { return nil }
            self.init(text: number.literal, isNumber: true)
        default: return nil
        }
        guard Self.isAcceptable(text) else { return nil }
    }

    /// True for a JSON number written as an integer.
    private static func isInteger(_ text: String) -> Bool {
        JSONNumber(literal: text) != nil && text.utf8.dropFirst(text.hasPrefix("-") ? 1 : 0).allSatisfy(\.isDigit)
    }

    /// True if the text can be an id, and part of a URL.
    fileprivate static func isAcceptable(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= lengthLimit && !ServerID(text: text).isDotSegment
            && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }

    private static func sameOriginTarget(in location: String, from request: RequestHead) -> String? {
        guard case .sameOrigin(let target) = RedirectTarget(location, from: request) else { return nil }
        return target
    }

    /// The id of the item that a target names, and the path under which it is read: with the query only where that names the item.
    private static func item(at target: String, below request: RequestHead, templates: ResourceTemplates?) -> (id: String, path: String)? {
        var (target, path) = (target, String(target.prefix { $0 != "?" }))
        // FHIR names the version that was made.
        if templates?.resource.profile == .fhir, let version = path.firstRange(of: "/_history/") {
            path = String(path[..<version.lowerBound])
            target = path
        }
        if let templates {
            guard path[...].percentDecoded != nil, let match = templates.match(target: target), match.isItem, let id = match.id else {
                return nil
            }
            return (id, templates.isOfRows ? match.path : path)
        }
        let (segments, above) = (path[...].pathSegments.withoutTrailingSlash, request.segments)
        guard segments.count == above.count + 1, segments.starts(with: above), let id = segments.last?.percentDecoded else { return nil }
        return (id, path)
    }

    /// Returns the target of the item with this id in the collection that a create of a resource addresses.
    package func target(in request: RequestHead, resource: Resource?) -> String {
        itemTarget(below: request, templates: resource.map(ResourceTemplates.init))
    }

    /// Returns the target of the item with this id in the collection that `request` addresses.
    func itemTarget(below request: RequestHead, templates: ResourceTemplates?) -> String {
        let above = request.segments
        let byTemplate = templates?.itemTarget(id: self, in: above)
        return byTemplate ?? "/" + (above + [percentEncoded[...]]).joined(separator: "/")
    }
}

extension RequestHead {
    /// The segments of the path, without the empty one after a trailing slash.
    var segments: [Substring] { target.prefix { $0 != "?" }.pathSegments.withoutTrailingSlash }
}
