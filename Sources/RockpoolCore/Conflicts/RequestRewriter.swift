// Requests that write a merge result in the form of the original request: method, media type, envelope, with the current condition
// (docs/outbox.md#result).
import HTTPTypes

/// Builds requests that replace another.
struct RequestRewriter {
    private let request: RequestHead
    private let body: [UInt8]
    private let resource: Resource
    private let shape: RepresentationShape
    private let templates: ResourceTemplates

    init(_ request: RequestHead, body: [UInt8], resource: Resource) {
        self.request = request
        self.body = body
        self.resource = resource
        shape = RepresentationShape(resource)
        templates = ResourceTemplates(resource)
    }

    /// Returns the original write on top of theirs: only its condition, and a version in its body, are updated.
    func again(over theirs: ConflictCase.Theirs) -> Resend {
        guard let version = version(of: theirs), request.method != .delete, let sent, sent.object != nil else {
            return resend(request, body: body, over: theirs, carriesVersion: false)
        }
        var object = shape.object(ofWritten: shape.unwrapped(sent))
        resource.versionPlace?.place(version, in: &object)
        return resend(request, body: enveloped(object), over: theirs, carriesVersion: true)
    }

    /// Returns the request that changes theirs into the result, with the write's own method and format, or as a PUT where these cannot
    /// express it. Nil when it would need the path of an item without an id.
    func writing(_ result: JSONValue, over theirs: JSONValue, state: ConflictCase.Theirs) -> Resend? {
        switch (request.method, JSONBodyType(request.fields[.contentType])) {
        case (.patch, .otherJSON) where resource.profile == .jsonapi:
            guard let patch = shape.patch(from: theirs, to: result) else { break }
            return resend(request, body: enveloped(patch), over: state, carriesVersion: false)
        case (.patch, .mergePatch), (.patch, .json), (.patch, .otherJSON):
            let reading = JSONBodyType(request.fields[.contentType]) == .mergePatch ? MergePatchComposition.Reading.merge : .shallow
            guard var patch = theirs.mergePatch(to: result, reading: reading) else { break }
            let version = version(of: state)
            if let version { resource.versionPlace?.place(version, in: &patch) }
            return resend(request, body: enveloped(patch), over: state, carriesVersion: version != nil)
        case (.patch, .jsonPatch):
            let root = isEnveloped ? shape.envelope.tokens : []
            let isPart = isContentAlone
            guard !isPart || shape.content.get(in: theirs) != nil && shape.content.get(in: result) != nil else { break }
            var operations = (isPart ? shape.content.get(in: theirs) ?? theirs : theirs)
                .operations(to: isPart ? shape.content.get(in: result) ?? result : result, at: JSONPointer(tokens: root))
            let version = version(of: state)
            if let version, let place = resource.versionPlace {
                operations.insert(.test(JSONPointer(tokens: root + place.tokens), equals: version), at: 0)
            }
            guard operations.count <= JSONPatch.operationLimit else { break }
            return resend(request, body: JSONPatch(operations).document.serialized(), over: state, carriesVersion: version != nil)
        default: break
        }
        return putting(result, over: state)
    }

    /// Returns a PUT of the whole representation.
    func putting(_ result: JSONValue, over theirs: ConflictCase.Theirs) -> Resend? {
        var head = request
        head.method = .put
        if templates.match(target: request.target)?.isItem == false {
            guard let id = shape.idText(in: result), !id.isEmpty else { return nil }
            head.target = ServerID(text: id).itemTarget(below: request, templates: templates)
        }
        let version = version(of: theirs)
        var object = result
        if request.method == .put || request.method == .post, let sent = sent.map(shape.unwrapped) {
            // Keep the client's own form: members that it leaves to the upstream stay omitted.
            for place in [shape.id] + shape.managed where place.get(in: sent) == nil { place.remove(from: &object) }
        } else if theirs == .gone {
            for place in shape.stamps where place != shape.id { place.remove(from: &object) }
        }
        if let version { resource.versionPlace?.place(version, in: &object) }
        return resend(asJSON(head), body: enveloped(object), over: theirs, carriesVersion: version != nil)
    }

    /// Returns a POST of a new entity to the collection; the upstream assigns its id. Nil where the collection is unknown.
    func creating(_ object: JSONValue?) -> Resend? {
        guard let collection = templates.match(target: request.target)?.listTarget else { return nil }
        var head = request
        head.method = .post
        head.target = collection
        guard let object else { return Resend(request: unconditional(head), body: body, detection: .strong) }
        return Resend(request: unconditional(asJSON(head)), body: enveloped(shape.unstamped(object)), detection: .strong)
    }

    // MARK: - Parts

    private func resend(_ head: RequestHead, body: [UInt8], over theirs: ConflictCase.Theirs, carriesVersion: Bool) -> Resend {
        var head = unconditional(head, isNewBody: body != self.body)
        switch theirs {
        case .gone: head.fields[.ifNoneMatch] = "*"
        case .present(_, let answer):
            // Only a strong tag can match in `If-Match` (RFC 9110 §13.1.1).
            if let tag = theirs.side?.etag.flatMap({ EntityTag($0) }), tag.isStrong {
                head.fields[.ifMatch] = tag.fieldValue
            } else if request.fields.contains(.ifUnmodifiedSince), let modified = answer.fields.single(.lastModified) {
                head.fields[.ifUnmodifiedSince] = modified
            }
        }
        let isChecked = carriesVersion || [.ifMatch, .ifNoneMatch, .ifUnmodifiedSince].contains(where: head.fields.contains)
        return Resend(request: head, body: body, detection: isChecked ? .strong : .weak)
    }

    private func unconditional(_ head: RequestHead, isNewBody: Bool = true) -> RequestHead {
        var head = head
        for name in [HTTPField.Name.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince] { head.fields[name] = nil }
        if isNewBody { for name in Self.ofTheBody { head.fields[name] = nil } }
        return head
    }

    private func asJSON(_ head: RequestHead) -> RequestHead {
        var head = head
        switch JSONBodyType(head.fields[.contentType]) {
        case _ where head.fields[.contentType] == nil, .mergePatch, .jsonPatch, .other:
            head.fields[.contentType] = resource.profile?.mediaType ?? "application/json"
        case .json, .otherJSON: break
        }
        return head
    }

    private func version(of theirs: ConflictCase.Theirs) -> JSONValue? {
        theirs.side.flatMap(shape.object).flatMap { resource.versionPlace?.get(in: $0) }
    }

    private var sent: JSONValue? {
        body.count <= ConflictCase.sizeLimit && JSONBodyType(request.fields[.contentType]) != .other ? try? JSONValue.parse(body) : nil
    }

    /// True if the client's body has the envelope; without a body, the upstream's form is used.
    private var isEnveloped: Bool {
        guard !shape.envelope.tokens.isEmpty else { return false }
        guard let sent else { return true }
        guard let operations = sent.array else { return shape.envelope.get(in: sent)?.object != nil }
        let paths = operations.compactMap { $0["path"]?.string.flatMap { JSONPointer($0) } }
        return paths.allSatisfy { $0.tokens.starts(with: shape.envelope.tokens) }
    }

    /// True if the client's body is the content of its item alone.
    private var isContentAlone: Bool {
        guard !shape.content.tokens.isEmpty, let sent else { return false }
        guard let operations = sent.array else { return shape.isContentAlone(shape.unwrapped(sent)) }
        return operations.compactMap { $0["path"]?.string.flatMap { JSONPointer($0) } }
            .allSatisfy { path in
                [shape.envelope.tokens + shape.content.tokens, shape.content.tokens].allSatisfy { !path.tokens.starts(with: $0) }
            }
    }

    private func enveloped(_ object: JSONValue) -> [UInt8] {
        if isContentAlone, let content = shape.content.get(in: object) { return content.serialized() }
        return (isEnveloped ? shape.closed(object, in: sent?.object == nil ? nil : sent) : object).serialized()
    }

    /// Fields that describe the replaced body.
    private static let ofTheBody = [.contentLength, .contentEncoding] + HTTPField.Name.digests
}
