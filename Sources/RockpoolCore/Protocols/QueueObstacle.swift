// Writes that wait only where a route says so: a write is queued by what its body is, or not at all (docs/outbox.md#never-queued).
import HTTPTypes

/// The reason why a write is not queued by default: its client would take a 202 for something else, or its secret must not be stored.
package enum QueueObstacle: Hashable, Sendable {
    /// A media type that belongs to a protocol of its own.
    case type
    /// A call whose client needs the answer at once.
    case call
    case question, statement
    /// A statement that adds rows.
    case insertion
    case graphQL
    case lock, upload, login
    case crossSite

    /// True if no route lets such a request wait: its client has reported a failure, and does not expect a change later.
    package var isFinal: Bool { self == .statement }

    /// True if the request changes something, whatever a route says of its method.
    package var isChange: Bool { self == .statement || self == .insertion }

    /// The refusal as the end of a sentence, with the line of `routes` that helps. A GraphQL endpoint is declared by its kind. The answers of a
    /// path that only asks can be stored; one that only some bodies ask takes writes too.
    package func reason(for request: RequestHead) -> String {
        let refusal = "\(words(for: request)) is not queued"
        let match = "match: \"\(request.method.rawValue) \(request.path)\""
        let advice = "add to the upstream's routes:"
        switch self {
        case .statement: return refusal
        case .question where !Question.isAsked(at: request.path): return refusal
        case .graphQL: return "\(refusal); to queue it, \(advice) { \(match), kind: graphql }"
        case .question: return "\(refusal); to have its answers stored, \(advice) { \(match), read: true }"
        default: return "\(refusal); to queue it, \(advice) { \(match), queue: always }"
        }
    }

    /// The kind of request, as a noun for a sentence.
    private func words(for request: RequestHead) -> String {
        switch self {
        case .type: "a \(request.method.rawValue) of \(MediaType.essence(of: request.fields) ?? "")"
        case .call: "a remote procedure call"
        case .question: "a question by \(request.method.rawValue)"
        case .statement: "a statement in a query"
        case .insertion: "a statement that adds rows"
        case .graphQL: "a GraphQL request on a route that is not declared"
        case .lock: "a WebDAV lock"
        case .upload: "a step of an upload in several requests"
        case .login: "a request with a password or a grant"
        case .crossSite: "a form of another site"
        }
    }

    /// The obstacle that the head of a write shows; nil without one.
    package static func of(_ request: RequestHead) -> QueueObstacle? {
        if ["LOCK", "UNLOCK"].contains(request.method.rawValue) { return .lock }
        let parameters = FormParameter.all(ofTarget: request)
        let asked = Question.asked(by: parameters, isBody: false)
        if asked == .statement { return .statement }
        return byType(request) ?? byFields(request.fields) ?? byTarget(request, parameters) ?? (request.method == .post ? asked : nil)
            ?? (isForeignForm(request) ? .crossSite : nil)
    }

    private static func byType(_ request: RequestHead) -> QueueObstacle? {
        guard let value = request.fields[.contentType], let type = MediaType.essence(of: value) else { return nil }
        if type.hasPrefix("application/graphql") { return .graphQL }
        return WaitingType.mayWait(type, by: request.method, root: MediaTypeParameter.named("type", in: value)) ? nil : .type
    }

    private static func byFields(_ fields: HTTPFields) -> QueueObstacle? {
        for field in fields {
            switch field.name.canonicalName {
            case let name where PlainFields.calls.contains(name): return .call
            case "x-http-method-override" where ["GET", "HEAD"].contains(field.value.uppercased()): return .call
            case let name where PlainFields.uploads.contains(name): return .upload
            default: continue
            }
        }
        return nil
    }

    private static func byTarget(_ request: RequestHead, _ parameters: [FormParameter]) -> QueueObstacle? {
        let path = request.path
        if Array(path.utf8).holds("/blobs/uploads/") || parameters.contains(where: isUploadStep) { return .upload }
        // S3 deletes several objects by one POST, and lists in its answer what was deleted.
        if request.method == .post, parameters.contains(where: { $0.name == "delete" && $0.value.isEmpty }) { return .call }
        let last = path.split(separator: "/").last ?? ""
        if loginSegments.contains(last.lowercased()) { return .login }
        guard request.method == .post else { return nil }
        // What another method stores is a file of that name.
        if let name = last.withoutFormat, loginSegments.contains(name.lowercased()) { return .login }
        return Question.isBatch(at: path) ? .call : Question.isAsked(at: path) ? .question : nil
    }

    /// True for S3's multipart protocol and Google's resumable one, whose steps need the answer of the step before.
    private static func isUploadStep(_ parameter: FormParameter) -> Bool {
        ["uploads", "uploadId", "upload_id"].contains(parameter.name) || parameter.name == "uploadType" && parameter.value == "resumable"
    }

    /// Last segments of token endpoints and logins.
    private static let loginSegments: Set<String> = [
        "token", "login", "log-in", "log_in", "signin", "sign-in", "sign_in", "token.json", "login.json",
    ]

    /// True for a form that a page of another site sends: the browser announces it, or names the page's origin.
    private static func isForeignForm(_ request: RequestHead) -> Bool {
        let type = MediaType.essence(of: request.fields) ?? ""
        guard ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"].contains(type) else { return false }
        if let site = request.fields.value(of: "sec-fetch-site") {
            return site == "cross-site" && request.fields.value(of: "sec-fetch-mode") != "cors"
        }
        guard let origin = request.fields[.origin], MediaType.isAskedForPages(request) else { return false }
        return origin != request.origin.url
    }
}

/// Calls, questions and logins that only the body of a write shows (docs/outbox.md#never-queued).
extension QueueObstacle {
    /// Bodies above this size are not searched: no login is longer, and a call with one waits at most for nothing.
    package static let searchLimit = ByteCount.kib(256)

    /// The obstacle that the body of a write shows; nil without one. Coded bodies are not searched. Only POST calls and asks: what another
    /// method stores may have the form of a call, and must not hold a secret nevertheless.
    package static func of(_ request: RequestHead, body: [UInt8]) -> QueueObstacle? {
        guard !body.isEmpty, Int64(body.count) <= searchLimit.bytes, !ContentCoding.isCoded(request.fields) else { return nil }
        let type = MediaType.essence(of: request.fields) ?? ""
        let isCall = request.method == .post
        // Programs send JSON under the type of a form or of a text too, as `curl -d` does.
        let isForm = type == "application/x-www-form-urlencoded"
        let isVague = isForm || type == "text/plain" || !type.contains("/")
        if MediaType.isJSON(request.fields) || isVague && body.first.map(isOpening) == true { return json(body, isCall: isCall) }
        if isForm { return form(FormParameter.all(ofForm: body), isCall: isCall) }
        if type == "multipart/form-data" { return form(FormParameter.all(ofMultipart: body), isCall: isCall) }
        return isCall && type == "text/xml" && isCallInXML(body) ? .call : nil
    }

    private static func isOpening(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") }

    private static func json(_ body: [UInt8], isCall: Bool) -> QueueObstacle? {
        // Parsing costs as much as everything else that is done with a write: most bodies have none of these words.
        let words: [StaticString] = [
            "method", "query\"", "\"q\"", "sql\"", "stmt\"", "statement\"", "command\"", "\"cmd\"", "assw", "assphrase", "rant", "ecret",
        ]
        guard words.contains(where: { body.holds($0) }), let document = try? JSONValue.parse(body) else { return nil }
        if holdsSecret(document, depth: 3) { return .login }
        guard isCall else { return nil }
        let requests = document.array ?? [document]
        if requests.contains(where: isJSONRPC) { return .call }
        // JMAP (RFC 8620 §3.3).
        if document["methodCalls"]?.array != nil, document["using"]?.array != nil { return .call }
        return Question.asked(by: document) ?? (GraphQLOperation.of(body: body) == nil ? nil : .graphQL)
    }

    /// True for a call of JSON-RPC 2.0, and of 1.0, which names no version.
    private static func isJSONRPC(_ request: JSONValue) -> Bool {
        request["method"]?.string != nil && (request["jsonrpc"] != nil || request["id"] != nil && request["params"]?.array != nil)
    }

    /// Looks into members of members too: many frameworks wrap a form in its name.
    private static func holdsSecret(_ document: JSONValue, depth: Int) -> Bool {
        guard depth > 0, let members = document.object else { return false }
        return members.contains { member in
            isSecret(member.name) && member.value.string?.isEmpty == false || holdsSecret(member.value, depth: depth - 1)
        }
    }

    private static func form(_ parameters: [FormParameter], isCall: Bool) -> QueueObstacle? {
        if parameters.contains(where: { !$0.isEmpty && isSecret($0.name) }) { return .login }
        return isCall ? Question.asked(by: parameters, isBody: true) : nil
    }

    /// True for SOAP and XML-RPC. The root element decides.
    private static func isCallInXML(_ body: [UInt8]) -> Bool {
        let root = XMLReader.root(of: body)
        return root == "methodCall" || root == "Envelope"
    }

    /// True if a member of this name holds a secret that must not be written to disk: `password`, `user[password]`, `client_secret`.
    static func isSecret(_ name: String) -> Bool {
        let plain = name.lowercased().filter { $0 != "_" && $0 != "-" && $0 != "]" }
        let last = plain.split(whereSeparator: { $0 == "[" || $0 == "." }).last.map { $0.prefix { !$0.isNumber } } ?? ""
        return last == "granttype" || last == "passwd" || last == "passphrase" || last == "clientsecret"
            || last.hasSuffix("password") || last == "passwordconfirmation"
    }
}

/// The rule that decides by its media type whether a body may be stored and sent later.
enum WaitingType {
    /// True if a body of this type may wait.
    ///
    /// POST and PATCH have the meaning of their body. It may be a document of an API (JSON), a form, a patch, a text or a medium; any other
    /// type of `application` and of `multipart` belongs to a protocol, whose client needs the answer. Every other method says itself what it
    /// does, above all PUT, which stores its body as it is: that may be a file of any type.
    /// - Parameters:
    ///   - type: `type/subtype` in lower case. A text without a slash counts as no type.
    ///   - root: the parameter `type` of `multipart/related` (RFC 2387 §3.1), the type of the part that says what the whole is.
    static func mayWait(_ type: String, by method: HTTPRequest.Method, root: String? = nil) -> Bool {
        guard let slash = type.firstIndex(of: "/") else { return true }
        if calls.contains(type) || callPrefixes.contains(where: { type.hasPrefix($0) }) { return false }
        guard method == .post || method == .patch else { return true }
        let subtype = type[type.index(after: slash)...]
        switch type[..<slash] {
        case "application": return isDocument(subtype) || isPatch(subtype) || subtype == "x-www-form-urlencoded"
        case "multipart":
            return subtype == "form-data" || subtype == "related" && root.map { mayWait($0.lowercased(), by: method) } != false
        default: return true
        }
    }

    /// True for JSON, and for JSON in lines.
    private static func isDocument(_ subtype: Substring) -> Bool {
        subtype.hasSuffix("+json") || ["json", "x-json", "ndjson", "x-ndjson", "jsonl", "json-seq"].contains(subtype)
    }

    /// True for `json-patch+json`, `apply-patch+yaml`, `xml-patch+xml` and any other with that word.
    private static func isPatch(_ subtype: Substring) -> Bool {
        subtype.split { !$0.isLetter }.contains("patch")
    }

    /// Texts and kinds of JSON that are calls: the client needs the answer, or has signed the request for this moment (ACME, RFC 8555 §6.2).
    private static let calls: Set<String> = [
        "application/jose+json", "application/vnd.git-lfs+json", "application/vnd.elasticsearch+json", "text/x-gwt-rpc",
        "message/ohttp-req", "message/ohttp-chunked-req",
    ]
    /// With the encoding behind it: `application/grpc-web+json`, `application/connect+json`.
    private static let callPrefixes = ["application/grpc", "application/connect+"]
}

/// A parameter of a media type.
enum MediaTypeParameter {
    /// The value of a parameter without its quotes (RFC 9110 §5.6.6); nil if there is none, or an empty one.
    /// - Parameters:
    ///   - name: in lower case.
    ///   - value: the value of the field.
    static func named(_ name: String, in value: String) -> String? {
        for part in value.split(separator: ";").dropFirst() {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, FieldList.trimmed(pair[0]).lowercased() == name else { continue }
            let text = FieldList.trimmed(pair[1]).filter { $0 != "\"" }
            return text.isEmpty ? nil : text
        }
        return nil
    }
}
