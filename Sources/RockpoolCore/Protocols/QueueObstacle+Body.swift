// Calls and logins that only the body of a write shows (docs/outbox.md#never-queued).
import HTTPTypes

extension QueueObstacle {
    /// Bodies above this size are not searched: no login is longer, and a call with one waits at most for nothing.
    package static let searchLimit = ByteCount.kib(256)

    /// The obstacle that the body of a write shows; nil without one. Coded bodies are not searched.
    package static func of(_ request: RequestHead, body: [UInt8]) -> QueueObstacle? {
        guard !body.isEmpty, Int64(body.count) <= searchLimit.bytes, !ContentCoding.isCoded(request.fields) else { return nil }
        let type = MediaType.essence(of: request.fields) ?? ""
        if MediaType.isJSON(request.fields) || type.isEmpty && body.first.map(isOpening) == true { return json(body) }
        if type == "application/x-www-form-urlencoded" { return form(body) }
        if type == "multipart/form-data" { return multipart(body) }
        return type == "text/xml" || type == "application/xml" ? xml(body) : nil
    }

    private static func isOpening(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") }

    private static func json(_ body: [UInt8]) -> QueueObstacle? {
        // Parsing costs as much as everything else that is done with a write: most bodies have none of these words.
        let words: [StaticString] = ["jsonrpc", "methodCalls", "query", "assw", "assphrase", "rant", "ecret"]
        guard words.contains(where: { body.holds($0) }), let document = try? JSONValue.parse(body) else { return nil }
        let requests = document.array ?? [document]
        if requests.contains(where: { $0["jsonrpc"] != nil && $0["method"] != nil }) { return .jsonRPC }
        // JMAP (RFC 8620 §3.3).
        if document["methodCalls"]?.array != nil, document["using"]?.array != nil { return .jsonRPC }
        if holdsSecret(document, depth: 3) { return .login }
        return GraphQLOperation.of(body: body) == nil ? nil : .graphQL
    }

    /// Looks into members of members too: many frameworks wrap a form in its name.
    private static func holdsSecret(_ document: JSONValue, depth: Int) -> Bool {
        guard depth > 0, let members = document.object else { return false }
        return members.contains { member in
            isSecret(member.name) && member.value.string?.isEmpty == false || holdsSecret(member.value, depth: depth - 1)
        }
    }

    private static func form(_ body: [UInt8]) -> QueueObstacle? {
        let isLogin = body.split(separator: UInt8(ascii: "&")).contains { pair in
            let name = pair.prefix { $0 != FieldByte.equals }
            return pair.count > name.count + 1 && isSecret(FormEncoding.text(of: name))
        }
        return isLogin ? .login : nil
    }

    /// Examines the names of the parts (RFC 7578 §4.2).
    private static func multipart(_ body: [UInt8]) -> QueueObstacle? {
        let mark = Array("name=\"".utf8)
        var rest = body[...]
        while let start = rest.firstRange(of: mark)?.upperBound {
            let name = rest[start...].prefix { $0 != FieldByte.quote }
            if isSecret(String(decoding: name, as: UTF8.self)) { return .login }
            rest = rest[name.endIndex...]
        }
        return nil
    }

    /// The root element decides; declarations and comments before it are short.
    private static func xml(_ body: [UInt8]) -> QueueObstacle? {
        let start = String(decoding: body.prefix(2048), as: UTF8.self)
        if start.contains("<methodCall") { return .xmlRPC }
        return start.contains(":Envelope") || start.contains("<Envelope") ? .soap : nil
    }

    /// True if a member of this name holds a secret that must not be written to disk: `password`, `user[password]`, `client_secret`.
    static func isSecret(_ name: String) -> Bool {
        let plain = name.lowercased().filter { $0 != "_" && $0 != "-" && $0 != "]" }
        let last = plain.split(whereSeparator: { $0 == "[" || $0 == "." }).last.map { $0.prefix { !$0.isNumber } } ?? ""
        return last == "granttype" || last == "passwd" || last == "passphrase" || last == "clientsecret"
            || last.hasSuffix("password") || last == "passwordconfirmation"
    }
}
