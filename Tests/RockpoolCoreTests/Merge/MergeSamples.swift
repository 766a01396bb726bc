// Helpers of the merge tests: JSON from text, and conflict cases.
import HTTPTypes
import RockpoolCore

func parsed(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }
func written(_ value: JSONValue?) -> String { value.map { String(decoding: $0.serialized(), as: UTF8.self) } ?? "nothing" }
func written(_ side: Conflict.Side?) -> String { side.map { String(decoding: $0.body, as: UTF8.self) } ?? "nothing" }

extension Conflict.Side {
    init(_ text: String, etag: String? = nil, type: String? = "application/json") {
        self.init(body: Array(text.utf8), contentType: type, etag: etag)
    }
}

extension Resource {
    static func merging(
        _ conflict: Resource.Conflict = .fieldMerge, _ fields: [String: String] = [:], version: String = "etag", envelope: String = ""
    ) -> Resource {
        Resource(
            collection: "/notes", envelope: envelope, version: version, updatedAt: "/updatedAt", conflict: conflict, fields: fields)
    }
}

extension RequestHead {
    static func note(_ method: HTTPRequest.Method, _ type: String? = "application/json", id: String? = "1") -> RequestHead {
        var head = RequestHead(
            method: method, origin: OriginAddress(scheme: .https, host: "api.test"), target: id.map { "/notes/" + $0 } ?? "/notes")
        head.fields[.contentType] = method == .delete ? nil : type
        return head
    }
}

extension ConflictCase {
    /// A nil `theirs` is a deletion.
    init(
        _ method: HTTPRequest.Method, _ body: String, base: String?, theirs: String?, _ resource: Resource = .merging(),
        type: String = "application/json", etag: String? = "\"2\"", status: Int = 412, modified: String? = nil
    ) {
        var head = ResponseHead(status: 200)
        head.fields[.lastModified] = modified
        self.init(
            request: .note(method, type), body: Array(body.utf8), resource: resource, base: base.map { Conflict.Side($0, etag: "\"1\"") },
            theirs: theirs.map { .present(Conflict.Side($0, etag: etag), head) } ?? .gone, cause: .refused(status: status),
            acceptedAt: noon)
    }

    func changed(_ change: (inout ConflictCase) -> Void) -> ConflictCase {
        var changed = self
        change(&changed)
        return changed
    }
}

extension ConflictVerdict {
    var resend: Resend? { if case .resend(let resend) = action { resend } else { nil } }

    /// The action in one line: method, target, conditions, body.
    var line: String {
        switch action {
        case .delivered: "delivered"
        case .yield: "yield"
        case .ask: "ask"
        case .resend(let resend): resend.line
        }
    }

    /// Returns the conflict as a store would record it.
    func recorded(url: String = "https://api.test/notes/1", strategy: Resource.Conflict = .fieldMerge, isOpen: Bool = false) -> Conflict {
        Conflict(
            id: "c", operation: "op", sequence: 1, upstream: "notes", url: url, entity: "/notes/1", kind: kind, strategy: strategy,
            detection: detection, base: base, mine: mine, theirs: theirs, result: result, fields: fields, openedAt: noon,
            closedAt: isOpen ? nil : noon, resolution: resolution, decidedBy: decidedBy)
    }
}

extension Resend {
    var line: String {
        let conditions = [HTTPField.Name.ifMatch, .ifNoneMatch, .ifUnmodifiedSince].compactMap { name in
            request.fields[name].map { "\(name.canonicalName)=\($0)" }
        }
        return ([request.method.rawValue, request.target] + conditions + [String(decoding: body, as: UTF8.self)])
            .filter { !$0.isEmpty }.joined(separator: " ")
    }
}
