// Calls, questions and logins that only the body of a write shows (docs/outbox.md#never-queued).
import HTTPTypes

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
