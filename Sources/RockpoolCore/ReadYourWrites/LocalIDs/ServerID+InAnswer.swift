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
        let object = resource.map { JSONPointer($0.envelope + $0.id) } ?? JSONPointer("/id")
        let written = object.flatMap { pointer in json.flatMap(pointer.get) }.flatMap(ServerID.init)
        if let path = head.fields.single(.location).flatMap({ sameOriginPath(in: $0, from: request) }),
            let text = idSegment(of: path, below: request, templates: templates).flatMap(\.percentDecoded), isAcceptable(text)
        {
            let isNumber = written.map { $0 == ServerID(text: text, isNumber: true) } ?? (idsAreNumbers && isInteger(text))
            return ServerMapping(id: ServerID(text: text, isNumber: isNumber), url: request.origin.url + path)
        }
        guard let written else { return nil }
        return ServerMapping(id: written, url: request.origin.url + written.itemPath(below: request, templates: templates))
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

    private static func sameOriginPath(in location: String, from request: RequestHead) -> String? {
        guard case .sameOrigin(let target) = RedirectTarget(location, from: request) else { return nil }
        return String(target.prefix { $0 != "?" })
    }

    private static func idSegment(of path: String, below request: RequestHead, templates: ResourceTemplates?) -> Substring? {
        let segments = path[...].pathSegments.withoutTrailingSlash
        if let templates { return templates.match(segments)?.id.map { $0[...] } }
        let above = request.segments
        return segments.count == above.count + 1 && segments.starts(with: above) ? segments.last : nil
    }

    /// Returns the path of the item with this id in the collection that `request` addresses.
    func itemPath(below request: RequestHead, templates: ResourceTemplates?) -> String {
        let above = request.segments
        let byTemplate = templates?.itemPath(id: percentEncoded, in: above)
        return byTemplate ?? "/" + (above + [percentEncoded[...]]).joined(separator: "/")
    }
}

extension RequestHead {
    /// The segments of the path, without the empty one after a trailing slash.
    var segments: [Substring] { target.prefix { $0 != "?" }.pathSegments.withoutTrailingSlash }
}
