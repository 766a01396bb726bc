// The columns of `op` that change with the state of an operation, and those of its base (docs/outbox.md#states, docs/outbox.md#schema).
import FoundationEssentials
import GRDB
import RockpoolCore

extension OperationColumn {
    static let base: [OperationColumn] = [
        OperationColumn("base_sha", bind: { $0.pinned }).inherited(),
        OperationColumn("base_etag", bind: { $0.new.baseETag }, read: { $1.baseETag = try $0.nextIfAny() }).inherited(),
        OperationColumn("base_version").inherited(),
        OperationColumn("base_seq", bind: { $0.base }, read: { $1.baseSequence = try $0.nextIfAny() }).inherited(),
        OperationColumn(
            "viewer", bind: { $0.new.viewer?.number }, read: { $1.viewer = try $0.nextIfAny(Int64.self).map { .init(number: $0) } }
        )
        .inherited(),
        OperationColumn(
            "base_seen", bind: { $0.new.baseSeen?.text },
            read: { $1.baseSeen = try $0.nextIfAny(String.self).flatMap { BaseSeen(text: $0) } }
        ).inherited(),
        OperationColumn("superseded_by"),
        OperationColumn("fixes").inherited(as: "seq"),
    ]

    static let state: [OperationColumn] = [
        OperationColumn("state", bind: { $0.new.state.rawValue }, read: { $1.state = try $0.nextWord() }),
        OperationColumn("reason", bind: { $0.new.reason?.rawValue }, read: { $1.reason = try $0.word() }),
        OperationColumn("answered_attempts", read: { $1.answeredAttempts = try $0.next() }),
        OperationColumn("net_attempts", read: { $1.networkAttempts = try $0.next() }),
        OperationColumn("probes", read: { $1.probes = try $0.next() }),
        OperationColumn("last_error", bind: { $0.new.lastError }, read: { $1.lastError = try $0.nextIfAny() }),
    ]

    static let times: [OperationColumn] = [
        OperationColumn("accepted_at", bind: { $0.now.milliseconds }, read: { $1.acceptedAt = try $0.moment() }),
        OperationColumn(
            "first_sent_at", bind: { $0.new.firstSentAt?.milliseconds }, read: { $1.firstSentAt = try $0.momentIfAny() }),
        OperationColumn("next_at", bind: { $0.dueAt.milliseconds }, read: { $1.nextAttemptAt = try $0.moment() }),
        OperationColumn("expires_at", bind: { $0.new.expiresAt?.milliseconds }, read: { $1.expiresAt = try $0.momentIfAny() }).inherited(),
        OperationColumn("ended_at", read: { $1.endedAt = try $0.momentIfAny() }),
        OperationColumn("warned_at"),
        OperationColumn("sent_tick", bind: { $0.new.begun?.number }, read: { $1.begun = try $0.tickIfAny() }),
        OperationColumn("ended_tick", read: { $1.ended = try $0.tickIfAny() }),
    ]

    /// An operation whose result came from a conflict has fields and no status: it has no response of its own.
    static let outcome: [OperationColumn] = [
        OperationColumn(
            "resp_status",
            read: { columns, operation in
                guard let status: Int = try columns.nextIfAny() else { return }
                operation.result = OperationResult(head: ResponseHead(status: status), body: [])
            }),
        OperationColumn(
            "resp_headers",
            read: { columns, operation in
                let stored: Data? = try columns.nextIfAny()
                guard operation.result != nil else { return }
                guard let stored, let fields = FieldCodec.decode(stored) else { throw columns.unreadable }
                operation.result?.head.fields = fields
            }),
        OperationColumn(
            "resp_body", .sealed, isHeavy: true,
            read: { columns, operation in
                if let bytes: Data = try columns.nextIfAny() { operation.result?.body = Array(bytes) }
            }),
    ]
}
