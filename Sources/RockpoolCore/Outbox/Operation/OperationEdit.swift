// A person's edit of an operation before it is sent again, parsed strictly and applied to its request (docs/reference/admin-api.md#steering
// `PATCH`).
package import HTTPTypes

/// An edit. Absent members do not change; a header that is null is removed (RFC 7396).
package struct OperationEdit: Hashable, Sendable {
    /// The new method; never a safe one.
    package var method: HTTPRequest.Method?
    /// An absolute URL, or a path with its query at the same origin.
    package var url: String?
    /// Fields to set, or to remove where the list is empty, by their names.
    package var headers: [HTTPField.Name: [String]] = [:]
    /// The new body.
    package var body: Body?

    /// A body in its given form.
    package enum Body: Hashable, Sendable {
        case json(JSONValue)
        case bytes([UInt8])
    }

    package init() {}

    /// True if the edit changes nothing.
    package var isEmpty: Bool { self == OperationEdit() }

    /// Parses the document of a `PATCH`.
    /// - Throws: a 422 that names the invalid member.
    package init(_ document: JSONObject) throws(Refusal) {
        for (name, value) in document {
            switch name {
            case "method": method = try Self.method(from: value)
            case "url":
                guard let text = value.string, !text.isEmpty else { throw .unprocessable("url is an absolute URL or a path") }
                url = text
            case "headers": headers = try Self.headers(from: value)
            case "body", "bodyBase64":
                guard body == nil else { throw .unprocessable("send body or bodyBase64, not both") }
                body = try Self.body(name, value: value)
            default: throw .unprocessable("unknown member \(name.prefix(40)); there are method, url, headers, body and bodyBase64")
            }
        }
    }

    /// Returns the edited request and its body; nil where the body does not change.
    /// - Throws: a 422 that contains the reason when the URL is invalid.
    package func applied(to request: RequestHead) throws(Refusal) -> (request: RequestHead, body: [UInt8]?) {
        var fields = request.fields
        for (name, values) in headers { fields[values: name] = values }
        let method = method ?? request.method
        var edited = RequestHead(method: method, origin: request.origin, target: request.target, fields: fields)
        if let url = url.map({ SecretParameters.restored($0, from: request.target) }) {
            do {
                edited = try RequestHead(method: method, url: url.hasPrefix("/") ? request.origin.url + url : url, fields: fields)
            } catch {
                throw .unprocessable("url: \(error.detail)")
            }
        }
        switch body {
        case nil: return (edited, nil)
        case .bytes(let bytes): return (edited, bytes)
        case .json(let value): return (edited, OperationBodyJSON.bytes(of: value, contentType: edited.fields[.contentType]))
        }
    }

    // MARK: members

    private static func method(from value: JSONValue) throws(Refusal) -> HTTPRequest.Method {
        guard let text = value.string, let method = HTTPRequest.Method(text), method != .connect, !method.isSafe else {
            throw .unprocessable("method is that of a write: POST, PUT, PATCH, DELETE or one of the upstream's own")
        }
        return method
    }

    private static func headers(from value: JSONValue) throws(Refusal) -> [HTTPField.Name: [String]] {
        guard let object = value.object else { throw .unprocessable("headers is an object of names and values") }
        var headers: [HTTPField.Name: [String]] = [:]
        for (text, value) in object {
            guard let name = HTTPField.Name(text) else { throw .unprocessable("headers: \(text.prefix(40)) is no field name") }
            guard !SecretFields.contains(name) else {
                throw .unprocessable("headers: \(text) is a credential; none is stored, the sender's live one is used")
            }
            guard !ours.contains(name.canonicalName), !name.canonicalName.hasPrefix("rockpool-") else {
                throw .unprocessable("headers: \(text) is set when the request is sent")
            }
            let values = value.isNull ? [] : value.array.map { $0.compactMap(\.string) } ?? value.string.map { [$0] }
            guard let values, values.count == value.array?.count ?? values.count, values.allSatisfy(HTTPField.isValidValue) else {
                throw .unprocessable("headers: the value of \(text) is a string, a list of strings, or null to remove it")
            }
            headers[name, default: []] += values
        }
        return headers
    }

    private static func body(_ name: String, value: JSONValue) throws(Refusal) -> Body {
        if name == "body" { return .json(value) }
        guard let bytes = value.string.flatMap(Base64.decode) else { throw .unprocessable("bodyBase64 is not base64 (RFC 4648 §4)") }
        return .bytes(bytes)
    }

    /// Fields of the connection, the message's framing, or the proxy.
    private static let ours: Set<String> = [
        "host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length", "expect",
        "via", "cdn-loop", "prefer",
    ]
}
