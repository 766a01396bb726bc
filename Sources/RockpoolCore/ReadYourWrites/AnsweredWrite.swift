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

    /// The URL of the item that a create made: the answer's `Location` within the origin, else the place of the id in its body. Nil for
    /// another write.
    package var created: ServerMapping? {
        guard outcome == .applied, request.method == .post, entity?.action == nil, entity?.isItem != true else { return nil }
        guard answerBody != nil || answer.fields.contains(.location) else { return nil }
        return ServerID.inAnswer(answer, json: answerJSON, to: request, resource: entity?.resource, idsAreNumbers: idsAreNumbers)
    }
}
