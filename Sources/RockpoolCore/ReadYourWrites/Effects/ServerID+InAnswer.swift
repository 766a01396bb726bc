// The id in an upstream's answer to a create: from `Location` first, then from the body (docs/outbox.md#local-ids; RFC 9110 §10.2.2).
import HTTPTypes

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
    private static func isAcceptable(_ text: String) -> Bool {
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
