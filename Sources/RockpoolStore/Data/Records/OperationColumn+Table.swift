// The columns of `op`, each described once (docs/outbox.md#schema).
import FoundationEssentials
import GRDB
import HTTPTypes
import RockpoolCore

extension OperationColumn {
    /// Every column of `op`, in the order of statements; that of the table differs.
    static let table: [OperationColumn] = Array([identity, request, body, place, base, state, times, outcome].joined())

    private static let identity: [OperationColumn] = [
        // Not what SQLite would choose: one beyond every row, also those that stay at this node (`HeldOperations`).
        OperationColumn("seq", inserted: NextNumber.sql(of: "op"), read: { $1.sequence = try $0.next() }),
        OperationColumn("id", bind: { $0.new.id }, read: { $1.id = try $0.next() }),
        OperationColumn("idem_key", bind: { $0.new.idempotencyKey }, read: { $1.idempotencyKey = try $0.next() }),
        OperationColumn("key_origin", bind: { $0.keyOrigin }, read: { $1.keyIsClients = try $0.keyIsClients() }),
        OperationColumn("key_rev").inherited(as: "key_rev + 1"),
        OperationColumn("client_key", bind: { $0.clientKey }),
        OperationColumn("fingerprint", .sealedName, bind: { $0.new.fingerprint.data }),
        OperationColumn("principal", bind: { $0.principal }, read: { $1.principal = try $0.principal() }).inherited(),
    ]

    private static let request: [OperationColumn] = [
        OperationColumn("upstream", bind: { $0.new.upstream }, read: { $1.upstream = try $0.next() }),
        OperationColumn("origin", bind: { $0.new.request.origin.url }, read: { $1.request.origin = try $0.origin() }),
        OperationColumn("method", bind: { $0.new.request.method.rawValue }, read: { $1.request.method = try $0.method() }),
        OperationColumn("target", .sealedTarget, bind: { $0.new.request.target }, read: { $1.request.target = try $0.next() }),
        OperationColumn("intent", bind: { QueuedWriteDraft.intent(of: $0.new.request.method) }),
        OperationColumn("headers", bind: { $0.new.storedFields }, read: { $1.request.fields = try $0.fields() }),
        OperationColumn("content_type", bind: { $0.new.request.fields[.contentType] }),
    ]

    /// A row has a body, or the hash of a blob with its length.
    private static let body: [OperationColumn] = [
        OperationColumn(
            "body", .sealed, isHeavy: true, bind: { $0.new.body.inlineData },
            read: { columns, operation in
                if let bytes: Data = try columns.nextIfAny() { operation.body = .inline(Array(bytes)) }
            }),
        OperationColumn(
            "blob_sha", bind: { $0.new.body.blobHash },
            read: { columns, operation in
                if let hash: Data = try columns.nextIfAny() { operation.body = .blob(sha256: Digest.hex(hash), length: 0) }
            }),
        OperationColumn(
            "body_len", bind: { $0.new.body.length },
            read: { columns, operation in
                let length: Int64 = try columns.next()
                switch operation.body {
                case .blob(let sha256, _): operation.body = .blob(sha256: sha256, length: length)
                default: operation.unreadBodyBytes = length - operation.body.length
                }
            }),
    ]

    private static let place: [OperationColumn] = [
        // The place equals the sequence that the row will get.
        OperationColumn("place", inserted: NextNumber.sql(of: "op"), read: { $1.place = try $0.next() }).inherited(),
        OperationColumn("lane", bind: { $0.new.lane }, read: { $1.lane = try $0.next() }).inherited(),
        OperationColumn("group_name", bind: { $0.new.group }).inherited(),
        OperationColumn("priority", bind: { $0.new.priority }, read: { $1.priority = try $0.next() }).inherited(),
        OperationColumn("no_merge", bind: { $0.new.noMerge }, read: { $1.noMerge = try $0.next() }).inherited(),
        OperationColumn("entity", bind: { $0.new.entity }, read: { $1.entity = try $0.nextIfAny() }),
        OperationColumn("entity_type", bind: { $0.new.collection }, read: { $1.collection = try $0.nextIfAny() }).inherited(),
        OperationColumn("entity_id", bind: { $0.new.entityID }, read: { $1.entityID = try $0.nextIfAny() }).inherited(),
        OperationColumn("local_id", bind: { $0.new.localID?.text }, read: { $1.localID = try $0.localID() }).inherited(),
    ]
}
