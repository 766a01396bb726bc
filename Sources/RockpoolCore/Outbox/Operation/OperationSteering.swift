// The commands of a person on an operation by state, the reasons for refusing them, and the edits (docs/outbox.md#steering, P13;
// docs/reference/admin-api.md#steering).
package import HTTPTypes

/// A person's command on one operation.
package enum OperationSteering: String, CaseIterable, Sendable, Codable {
    /// Try again now.
    case retry
    /// Cancel it before it is sent.
    case cancel
    /// Give up an operation that waits for a decision.
    case discard
    /// Replace it by an edited one, which takes its place in the lane.
    case edit

    /// The verdict on a command.
    package enum Verdict: Hashable, Sendable {
        /// `warning` describes a remaining risk, e.g. that an earlier attempt may have taken effect.
        case allowed(state: OperationState, reason: OperationReason?, warning: String?)
        /// The `detail` of a 409.
        case refused(String)
    }

    /// The states in which the command is allowed: the `from` of the store's transition.
    package var allowedFrom: Set<OperationState> {
        switch self {
        case .retry: [.pending, .uncertain, .conflicted, .parked, .dead]
        case .cancel: [.pending, .parked]
        case .discard: [.pending, .uncertain, .conflicted, .parked, .dead]
        case .edit: [.pending, .conflicted, .parked, .dead]
        }
    }

    /// Returns the commands that are allowed on `operation`. `lostAt` is the last attempt whose outcome is unknown.
    package static func allowed(on operation: QueuedWrite) -> [OperationSteering] {
        allCases.filter { command in
            if case .allowed = command.verdict(on: operation, isInDoubt: operation.lostAt != nil) { true } else { false }
        }
    }

    /// Returns whether the command is allowed on `operation`, and the next state.
    /// - Parameter isInDoubt: true if an earlier attempt was sent and its outcome is unknown.
    package func verdict(on operation: QueuedWrite, isInDoubt: Bool = false) -> Verdict {
        guard allowedFrom.contains(operation.state) else { return .refused(whyNot(operation.state)) }
        let warning = isInDoubt || wasSent(operation) ? "it was sent before; the upstream may have applied it" : nil
        switch self {
        case .retry: return .allowed(state: .pending, reason: nil, warning: retryWarning(for: operation))
        case .cancel: return .allowed(state: .cancelled, reason: .cancelled, warning: warning)
        case .discard: return .allowed(state: .cancelled, reason: .discarded, warning: warning)
        case .edit where isInDoubt && operation.state == .pending && !operation.request.method.isIdempotent:
            // A different payload is sent with a different key, which would not suppress the first one's effect (docs/outbox.md#keys).
            return .refused("an earlier attempt may have taken effect; edit it when its next one has told, or cancel it")
        case .edit: return .allowed(state: .superseded, reason: .edited, warning: warning)
        }
    }

    /// True if a retried operation gets a new key: the upstream has refused it, and servers store refusals under the key (docs/outbox.md#keys).
    /// One that was given up after server errors may have taken effect under its key, and keeps it.
    package static func renewsKey(of operation: QueuedWrite) -> Bool {
        switch (operation.state, operation.reason) {
        case (.dead, .rejected), (.dead, .tooOld), (.uncertain, .rejected): true
        case (.conflicted, _): operation.lostAt == nil
        default: false
        }
    }

    private func whyNot(_ state: OperationState) -> String {
        switch state {
        case .inflight: "it is being sent at this moment; try again when its attempt has ended"
        case .delivered: "it has been delivered"
        case .cancelled: "it has been cancelled"
        case .superseded: "a later operation has taken its place"
        case .uncertain where self == .edit: "its last attempt may have taken effect; retry or discard it"
        case .uncertain: "its last attempt may have taken effect; discard it instead"
        case .conflicted, .dead: "the upstream has refused it; discard it instead"
        case .pending, .parked: "it is still waiting"
        }
    }

    private func retryWarning(for operation: QueuedWrite) -> String? {
        operation.state == .uncertain && !operation.request.method.isIdempotent
            ? "its last attempt may have taken effect; sending it again may do so twice" : nil
    }

    /// A refusal proves that nothing was applied; any other earlier attempt may have taken effect (P13).
    private func wasSent(_ operation: QueuedWrite) -> Bool {
        let waits = [OperationState.pending, .uncertain, .parked].contains(operation.state)
        return operation.lostAt != nil || waits && operation.firstSentAt != nil
    }
}

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
        for (name, values) in headers {
            let old = fields[values: name]
            fields[values: name] = values.indices.map { place in
                place < old.count ? SecretParameters.restored(values[place], from: old[place]) : values[place]
            }
        }
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

    // MARK: - Members

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
