// The points at which a test kills the server, and the kinds of upstream (docs/outbox.md#fault-points).
import NotesAPI
import RockpoolCore
import Testing

/// One of K1–K17.
struct KillPoint: Hashable, CustomTestStringConvertible, Sendable {
    /// The process that kills the server, and the time of the kill.
    enum Trigger: Hashable, Sendable {
        /// The server itself, while it accepts a write.
        case accepting
        /// The server itself, while it delivers.
        case replaying
        /// The test, when the upstream has accepted the connection.
        case connected
        /// The test, when the upstream has half of a large body.
        case halfSent
        /// The test, when the upstream has applied the write; its response is never sent.
        case applied
        /// The test, when the upstream has the request; the upstream applies it after the server's end.
        case appliedLater
        /// The server itself, while it decides a conflict.
        case merging
        /// The server itself, in a cleanup.
        case cleaning
        /// The server itself, at its start on a store of an older version.
        case migrating
    }

    let name: String
    /// The kill happens when the point is reached for this time.
    var time = 1
    let trigger: Trigger

    /// Each name once, in order.
    static let names = all.map(\.name).reduce(into: [String]()) { names, name in
        if names.last != name { names.append(name) }
    }

    var testDescription: String { trigger == .appliedLater ? "\(name), applied later" : time == 1 ? name : "\(name):\(time)" }
    var environment: [String: String] {
        switch trigger {
        case .connected, .halfSent, .applied, .appliedLater: [:]
        default: ["ROCKPOOL_KILL_AT": "\(name):\(time)"]
        }
    }

    /// The fourth write is the one with a large body.
    static let all = [
        KillPoint(name: "K1", time: 4, trigger: .accepting),
        KillPoint(name: "K2", trigger: .accepting),
        KillPoint(name: "K3", trigger: .accepting),
        KillPoint(name: "K4", time: 4, trigger: .accepting),
        KillPoint(name: "K5", time: 4, trigger: .accepting),
        KillPoint(name: "K6", time: 4, trigger: .replaying),
        KillPoint(name: "K7", trigger: .connected),
        KillPoint(name: "K8", trigger: .halfSent),
        KillPoint(name: "K9", trigger: .applied),
        KillPoint(name: "K9", trigger: .appliedLater),
        KillPoint(name: "K10", time: 4, trigger: .replaying),
        KillPoint(name: "K11", time: 4, trigger: .replaying),
        KillPoint(name: "K12", time: 2, trigger: .replaying),
        KillPoint(name: "K13", time: 2, trigger: .replaying),
        KillPoint(name: "K14", time: 2, trigger: .accepting),
        KillPoint(name: "K15", trigger: .merging),
        KillPoint(name: "K15", time: 3, trigger: .merging),
        KillPoint(name: "K16", time: 2, trigger: .cleaning),
        KillPoint(name: "K16", time: 3, trigger: .cleaning),
        KillPoint(name: "K17", trigger: .migrating),
    ]
}

/// The upstream's handling of keys, and of the attempts after the restart.
enum UpstreamKind: String, CaseIterable, Sendable {
    case keyed = "keys honoured"
    case keylessAsk = "no keys, `ask`"
    case droppingAnswers = "keys honoured, answers dropped"

    var honoursKeys: Bool { self != .keylessAsk }

    /// Returns members of the upstream's configuration entry.
    func members(squash: Bool) -> JSONValue {
        [
            "probe": ["path": "/healthz", "interval": "100ms", "expect": 204],
            "idempotency": ["honoured": honoursKeys ? "yes" : "unknown", "max_processing": "400ms"],
            "resources": [["collection": "/v1/notes", "item": "/v1/notes/{id}"]],
            "queue": ["uncertain": "ask", "squash": squash ? "safe" : "off"],
        ]
    }
}

/// A write of a client, identified by its key.
struct Write: Hashable, Sendable {
    let key: String
    let method: String
    let path: String
    let body: String

    init(_ key: String, _ method: String, _ path: String, title: String? = nil, body: String? = nil) {
        (self.key, self.method, self.path) = (key, method, path)
        self.body = body ?? #"{"title":"\#(title ?? key)"}"#
    }

    /// Returns the writes queued while the upstream is offline: creates, one note's changes in order, a body too large for its row.
    static func script(largeFirst: Bool) -> [Write] {
        let large = Write("w-large", "POST", "/v1/notes", title: String(repeating: "tide ", count: 220_000))
        let patches = (1...3).map { Write("w-patch\($0)", "PATCH", "/v1/notes/1") }
        let others = [Write("w-put", "PUT", "/v1/notes/2"), Write("w-create2", "POST", "/v1/notes")]
        let first = [Write("w-create", "POST", "/v1/notes")] + patches.dropLast()
        return (largeFirst ? [large] + first : first + [large]) + patches.suffix(1) + others
    }

    /// Operations that ended long before the cleanup: delivered ones, one of them with a body file, and a refused one.
    static let old = [
        Write("old-create", "POST", "/v1/notes"), Write("old-large", "POST", "/v1/notes", title: String(repeating: "ebb ", count: 280_000)),
        Write("old-refused", "PATCH", "/v1/notes/3", body: #"{"title":7}"#),
    ]

    /// Writes that conflict with changes of another client: one note's changes in order, and a change of a second note.
    static let meeting =
        [Write("w-create", "POST", "/v1/notes")] + (1...3).map { Write("w-patch\($0)", "PATCH", "/v1/notes/1") }
        + [Write("w-other", "PATCH", "/v1/notes/2")]

    /// Neighbouring writes that are squashed.
    static let squashable = [
        Write("w-create", "POST", "/v1/notes"), Write("w-put1", "PUT", "/v1/notes/2"), Write("w-put2", "PUT", "/v1/notes/2"),
        Write("w-put3", "PUT", "/v1/notes/2"), Write("w-patch1", "PATCH", "/v1/notes/1"),
    ]
}
