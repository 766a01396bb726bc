// An operation as clients, the admin API and the command line see it: its JSON document, and why it waits
// (docs/reference/admin-api.md#operation-document).
import HTTPTypes

/// Writes operations as JSON, without credentials.
package enum OperationDocument {
    /// - Parameters:
    ///   - standing: nil where it is not known: then members about other operations are empty.
    ///   - withSecrets: true for the secrets of its URLs, which are `REDACTED` otherwise.
    package static func json(
        of operation: QueuedWrite, standing: OperationRelations? = nil, withSecrets: Bool = false
    ) -> JSONValue {
        let operation = operation.shown(withSecrets: withSecrets)
        return [
            "id": .string(operation.id),
            "state": .string(operation.state.rawValue),
            "reason": .optional(operation.reason?.rawValue),
            "method": .string(operation.request.method.rawValue),
            "url": .string(operation.request.url),
            "upstream": .string(operation.upstream),
            "entity": .optional(operation.entity),
            "lane": .string(operation.lane),
            "idempotencyKey": .string(operation.idempotencyKey),
            "attempts": .number(JSONNumber(Int64(operation.answeredAttempts + operation.networkAttempts))),
            "acceptedAt": .string(RFC3339.format(operation.acceptedAt)),
            "nextAttemptAt": operation.state == .pending || operation.state == .uncertain
                ? .string(RFC3339.format(operation.nextAttemptAt)) : .null,
            "expiresAt": .optional(operation.expiresAt.map(RFC3339.format)),
            "endedAt": .optional(operation.endedAt.map(RFC3339.format)),
            "lastError": .optional(operation.lastError),
            "priority": .number(JSONNumber(Int64(operation.priority))),
            "repeats": .number(JSONNumber(Int64(operation.repeats))),
            "dependsOn": .array(standing?.dependsOn.map { .string($0.id) } ?? []),
            "supersededBy": .optional(standing?.supersededBy),
            "fixes": .optional(standing?.fixes),
            "localId": .optional(operation.localID?.text),
            "serverId": .optional(operation.serverID),
            "seen": operation.baseSeen?.json ?? .null,
            "result": operation.result.map(result) ?? .null,
            "links": ["self": .string(operation.statusPath)],
        ]
    }

    private static func result(of result: OperationResult) -> JSONValue {
        let fields = result.head.fields.map { field in (field.name.canonicalName, JSONValue.string(field.value)) }
        return [
            "status": .number(JSONNumber(Int64(result.head.status))),
            "headers": .object(JSONObject(fields)),
            "body": body(of: result.body),
        ]
    }

    /// Returns JSON embedded and other text as a string; null for bytes that are neither.
    static func body(of bytes: [UInt8]) -> JSONValue {
        if bytes.isEmpty { return .null }
        if let value = try? JSONValue.parse(bytes) { return value }
        return String(validating: bytes, as: UTF8.self).map { .string($0) } ?? .null
    }
}

extension QueuedWrite {
    /// The path prefix of status documents, on every authority.
    package static let statusPrefix = "/.well-known/rockpool/operations/"
    /// The path of its status document.
    package var statusPath: String { Self.statusPrefix + id }
    /// The id of the operation whose status document `target` names; nil for any other target.
    package static func statusID(in target: String) -> String? {
        target.hasPrefix(statusPrefix) ? String(target.dropFirst(statusPrefix.count).prefix { $0 != "?" }) : nil
    }
}

// MARK: - Body

/// `body` contains JSON embedded and other text as a string; `bodyBase64` contains the bytes of anything else. One rule
/// holds in both directions, so that a document read can be sent.
package enum OperationBodyJSON {
    /// Returns the member, one of the two, for a body of this type.
    package static func members(of bytes: [UInt8], contentType: String?) -> [(String, JSONValue)] {
        if bytes.isEmpty { return [("body", .null)] }
        if isJSON(contentType) {
            if let value = try? JSONValue.parse(bytes), !value.isNull { return [("body", value)] }
        } else if let text = String(validating: bytes, as: UTF8.self) {
            return [("body", .string(text))]
        }
        return [("bodyBase64", .string(Base64.encode(bytes)))]
    }

    /// Returns the bytes of a `body` for a request of this type; none for null.
    package static func bytes(of body: JSONValue, contentType: String?) -> [UInt8] {
        if body.isNull { return [] }
        if !isJSON(contentType), let text = body.string { return Array(text.utf8) }
        return body.serialized()
    }

    /// RFC 8259, and the `+json` of RFC 6839 §3.1.
    private static func isJSON(_ contentType: String?) -> Bool {
        guard let essence = contentType.map({ $0.prefix { $0 != ";" } })?.lowercased() else { return false }
        let type = FieldList.trimmed(essence[...])
        return type == "application/json" || type.hasSuffix("+json")
    }
}

// MARK: - Why it waits

/// The cause of an operation's wait (docs/outbox.md#waiting).
package enum WaitReason: Hashable, Sendable {
    /// An earlier operation of its lane.
    case lane(OperationLink)
    /// A dependency.
    case dependency(OperationLink)
    /// The upstream, which is unreachable or not trusted, with its last error.
    case upstream(name: String, Reachability.State, String?)
    /// An attempt of an earlier operation of its lane, which may still take effect until then (docs/outbox.md#lane-holds).
    case hold(until: Timestamp)
    /// The time of its next attempt.
    case time(Timestamp, lastError: String?)
    /// The pause of its route after a mass refusal.
    case massRefusal(RoutePause)
    /// A credential of the write's principal.
    case credential
    /// A decision of a person, with the reason.
    case person(String)
    /// Evidence whether its last attempt has taken effect.
    case evidence
    /// Nothing, because it is being sent.
    case answer
    /// Nothing, because it is next.
    case turn

    /// Returns the cause of the wait of `operation`; nil when it has ended.
    /// - Parameters:
    ///   - reachability: of its upstream; nil when that is no longer declared.
    ///   - heldUntil: when its lane is free of earlier attempts; nil if it is.
    ///   - pause: of its route; nil without one.
    ///   - unread: the reason why no upstream is known, where no configuration was read.
    package init?(
        _ operation: QueuedWrite, standing: OperationRelations, reachability: Reachability?, heldUntil: Timestamp? = nil,
        pause: RoutePause? = nil, unread: String? = nil, now: Timestamp
    ) {
        switch operation.state {
        case .delivered, .cancelled, .superseded: return nil
        case .inflight: self = .answer
        case .uncertain where operation.reason == .redirected:
            self = .person("\(Self.words(for: .redirected)); look whether it took effect, then retry or discard it")
        case .uncertain: self = .evidence
        case .conflicted: self = .person("the upstream's copy has changed as well; resolve the conflict")
        case .dead: self = .person("\(Self.words(for: operation.reason)); retry, edit or discard it")
        case .parked where operation.reason == .auth && (operation.principal == nil || operation.nextAttemptAt > now):
            self = .time(operation.nextAttemptAt, lastError: operation.lastError)
        case .parked where operation.reason == .auth: self = .credential
        case .parked: self = .person("\(Self.words(for: operation.reason)); retry, edit or discard it")
        case .pending:
            self.init(pending: operation, standing, reachability, heldUntil: heldUntil, pause: pause, unread: unread, now: now)
        }
    }

    private init(
        pending operation: QueuedWrite, _ standing: OperationRelations, _ reachability: Reachability?, heldUntil: Timestamp?,
        pause: RoutePause?, unread: String?, now: Timestamp
    ) {
        if let ahead = standing.ahead {
            self = .lane(ahead)
        } else if let needed = standing.blocker {
            self = .dependency(needed)
        } else if reachability == nil {
            self = .person(unread ?? "its upstream \(operation.upstream) is not declared any more; declare it again or discard it")
        } else if let reachability, !reachability.isReachable || !reachability.isTrusted {
            self = .upstream(name: operation.upstream, reachability.shownState, reachability.lastError)
        } else if let pause {
            self = .massRefusal(pause)
        } else if operation.nextAttemptAt > now {
            self = .time(operation.nextAttemptAt, lastError: operation.lastError)
        } else if let heldUntil, heldUntil > now {
            self = .hold(until: heldUntil)
        } else {
            self = .turn
        }
    }

    /// The text for people, without ids, because clients read it too and each may see only its own operations.
    package var words: String {
        switch self {
        case .lane(let ahead): "an earlier write of its lane comes first; that one \(Self.words(for: ahead))"
        case .dependency(let needed): "it needs another write, which \(Self.words(for: needed))"
        case .upstream(let name, let state, let error): "\(name) is \(state.words)\(error.map { " (\($0))" } ?? "")"
        case .hold(let moment): "an earlier attempt of its lane may still take effect; it is sent at \(RFC3339.format(moment))"
        case .time(let moment, let error): "it is tried again at \(RFC3339.format(moment))\(error.map { ", after: \($0)" } ?? "")"
        case .massRefusal(let pause): pause.words
        case .credential: "it waits for its owner to sign in: no live credential is known"
        case .person(let why): why
        case .evidence: "its last attempt may have taken effect; nobody knows yet"
        case .answer: "it is being sent"
        case .turn: "it is next to be sent"
        }
    }

    private static func words(for other: OperationLink) -> String {
        switch other.state {
        case .pending: "waits itself"
        case .inflight: "is being sent"
        case .uncertain: "may or may not have taken effect"
        case .conflicted: "is in conflict"
        case .parked: other.reason == .auth ? "waits for a credential" : "is parked"
        case .dead: "has failed (\(words(for: other.reason))) and waits for a person"
        case .delivered: "is delivered"
        case .cancelled: "has been given up"
        case .superseded: "has been replaced"
        }
    }

    private static func words(for reason: OperationReason?) -> String {
        switch reason {
        case .rejected: "the upstream has refused it"
        case .exhausted: "it was tried as often as it may be"
        case .expired: "the time its client gave it has passed"
        case .unmapped: "the upstream did not say what id it gave"
        case .tooOld: "the upstream takes it no more: first sent too long ago"
        case .redirected: "the upstream has redirected it"
        case .unshared: "the fleet's database does not take it"
        case .damaged: "its stored body is missing or damaged"
        default: reason.map { "it stands at \($0.rawValue)" } ?? "it waits for a person"
        }
    }
}

/// A pause of the writes of one route.
package struct RoutePause: Hashable, Sendable {
    /// The configured route, the declared resource, or the method of writes to other paths.
    package var route: String
    /// The client whose writes it concerns (`OperationSummary.client`); nil for those of all clients.
    package var client: String?
    /// What the refused writes have met, for people.
    package var cause: String
    package var since: Timestamp
    /// When the next write is tried.
    package var nextTest: Timestamp

    /// True if it concerns the writes of this client.
    package func concerns(_ other: String) -> Bool { client.map { $0 == other } ?? true }

    /// Shifts its times after the wall clock was set back.
    mutating func setBack(by span: TimeSpan) { (since, nextTest) = (since - span, nextTest - span) }

    /// One sentence for people.
    package var words: String {
        "paused: mass-refusal; different writes of \(route)\(client == nil ? "" : ", all of one client,") met \(cause), one is tried at \(RFC3339.format(nextTest))"
    }
}
