// One column of `op`: its name, and how it is inserted, selected, read and inherited (docs/outbox.md#schema).
import FoundationEssentials
import GRDB
import HTTPTypes
import RockpoolCore

/// A column of `op`. `table` is the single source of the INSERT, of both SELECT lists, of reading, and of what an edit inherits.
struct OperationColumn: Sendable {
    /// Returns the value that a new row gets; nil is NULL.
    typealias Binding = @Sendable (NewOperationRow) -> (any DatabaseValueConvertible)?
    /// Reads exactly one value of a row into an operation.
    typealias Reading = @Sendable (inout RowReader, inout QueuedWrite) throws -> Void

    /// How the value is stored.
    enum Form: Sendable {
        case plain
        /// A body, sealed as `storage.encrypt` demands.
        case sealed
        /// A hash, stored under the name that the seal gives it.
        case sealedName
        /// A URL or a target, its secrets sealed in every case.
        case sealedURL
        /// Fields, their secrets sealed in every case.
        case sealedFields

        /// A value that is given to a statement, as it is stored.
        var given: String {
            switch self {
            case .plain: "?"
            case .sealed: "sealed(?)"
            case .sealedName: "sealed_name(?)"
            case .sealedURL: "sealed_url(?)"
            case .sealedFields: "sealed_fields(?)"
            }
        }

        /// The value of a column in a SELECT.
        func selected(_ name: String) -> String {
            switch self {
            case .sealed: "unsealed(\(name))"
            case .sealedURL: "unsealed_url(\(name))"
            case .sealedFields: "unsealed_fields(\(name))"
            case .plain, .sealedName: name
            }
        }
    }

    let name: String
    let form: Form
    /// True if the value may be large: lists are read without it.
    let isHeavy: Bool
    /// The SQL of the value that a new row gets where it is not bound; nil leaves the default.
    let inserted: String?
    /// The SQL of the value that an edited operation inherits, over the row of the operation that it replaces; nil keeps its own.
    private(set) var inheritance: String?
    /// nil: a new row does not take the value from its `QueuedWriteDraft`.
    let bind: Binding?
    /// nil: the column is not a part of `QueuedWrite`.
    let read: Reading?

    init(
        _ name: String, _ form: Form = .plain, isHeavy: Bool = false, inserted: String? = nil, bind: Binding? = nil, read: Reading? = nil
    ) {
        self.name = name
        self.form = form
        self.isHeavy = isHeavy
        self.inserted = inserted
        self.bind = bind
        self.read = read
    }

    /// This column, inherited by an edited operation: as it is, or as the value of `sql`.
    func inherited(as sql: String? = nil) -> OperationColumn {
        var column = self
        column.inheritance = sql ?? name
        return column
    }

    /// The bound value of a new row.
    func value(of row: NewOperationRow) -> DatabaseValue { bind?(row)?.databaseValue ?? .null }

    /// Its value in an INSERT; nil leaves the default.
    var placeholder: String? { bind == nil ? inserted : given }

    /// A value that is given to a statement, as it is stored.
    var given: String { form.given }

    /// Its value in a SELECT.
    var selected: String { form.selected(name) }

    // MARK: - Statements

    /// The columns with a bound value, in the order of the arguments of `insert`.
    static let bound: [OperationColumn] = table.filter { $0.bind != nil }

    static let insert: String = {
        let given = table.filter { $0.placeholder != nil }
        let names = given.map(\.name).joined(separator: ", ")
        return "INSERT INTO op (\(names)) VALUES (\(given.compactMap(\.placeholder).joined(separator: ", ")))"
    }()

    /// Copies the inherited columns from the row `?2` to the row `?1`.
    static let inherit: String = {
        let given = table.filter { $0.inheritance != nil }
        let (names, values) = (given.map(\.name).joined(separator: ", "), given.compactMap(\.inheritance).joined(separator: ", "))
        return "UPDATE op SET (\(names)) = (SELECT \(values) FROM op WHERE seq = ?2) WHERE seq = ?1"
    }()
}

/// A new operation, with the values that the store adds to its row.
struct NewOperationRow {
    let new: QueuedWriteDraft
    /// The operation that it builds on.
    let base: Int64?
    /// The name of its pinned representation.
    let pinned: Data?
    let now: Timestamp

    var keyOrigin: String { new.keyIsClients ? "client" : "proxy" }
    var clientKey: String? { new.keyIsClients ? ClientKey(new).text : nil }
    /// The empty string for an operation without a principal.
    var principal: String { new.principal ?? "" }
    var dueAt: Timestamp { new.nextAttemptAt ?? now }
}

/// The scope of a client's idempotency key: its principal, which is of one upstream; without one, the upstream.
struct ClientKey {
    private let key: String
    private let principal: String
    private let upstream: String

    init(_ key: String, principal: String?, upstream: String) {
        (self.key, self.principal, self.upstream) = (key, principal ?? "", upstream)
    }

    init(_ new: QueuedWriteDraft) { self.init(new.idempotencyKey, principal: new.principal, upstream: new.upstream) }

    /// The value of the column: no two upstreams have one text.
    var text: String { principal.isEmpty ? "\(upstream.utf8.count) \(upstream) \(key)" : key }

    /// The values of the column that may be this key's; also of a version that did not tell upstreams apart.
    var texts: [String] { [text, key] }

    /// Finds its operation; also one of a version that did not tell upstreams apart.
    var condition: (String, [String]) {
        guard principal.isEmpty else { return ("principal = ? AND client_key = ?", [principal, text]) }
        return ("principal = '' AND (client_key = ? OR client_key = ? AND upstream = ?)", [text, key, upstream])
    }
}

// MARK: - The table

// The columns of `op`, each described once (docs/outbox.md#schema).
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
        OperationColumn("target", .sealedURL, bind: { $0.new.request.target }, read: { $1.request.target = try $0.next() }),
        OperationColumn("intent", bind: { QueuedWriteDraft.intent(of: $0.new.request.method) }),
        OperationColumn("headers", .sealedFields, bind: { $0.new.storedFields }, read: { $1.request.fields = try $0.fields() }),
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
        OperationColumn("local_id", bind: { $0.new.newItem?.text }, read: { $1.newItem = try $0.newItem() }).inherited(),
    ]

    // MARK: - State and base
    // The columns of `op` that change with the state of an operation, and those of its base (docs/outbox.md#states, docs/outbox.md#schema).

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
            "resp_headers", .sealedFields,
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

// MARK: - Rows

/// The SELECT lists of operations, and the decoding of their rows (docs/outbox.md#schema).
enum OperationRow {
    /// One value of the SELECT list: a column of `op`, or a fact from another table.
    struct Value: Sendable {
        /// Names the value in an error.
        let name: String
        let sql: String
        /// True if lists are read without it.
        var isHeavy = false
        let read: OperationColumn.Reading
    }

    /// The SELECT list. Values are read by position.
    static let values: [Value] =
        OperationColumn.table.compactMap { column -> Value? in
            guard let read = column.read else { return nil }
            return Value(name: column.name, sql: column.selected, isHeavy: column.isHeavy, read: read)
        } + relations

    private static let relations: [Value] = [
        Value(
            name: "needs", sql: needs,
            read: { columns, operation in (operation.needs, operation.follows) = needs(in: try columns.nextIfAny()) }),
        Value(
            name: "server_id", sql: "(SELECT server_id FROM id_map WHERE id_map.local_id = op.local_id)",
            read: { $1.serverID = try $0.nextIfAny() }),
        Value(
            name: "lost_at", sql: "(SELECT max(started) FROM attempt WHERE attempt.seq = op.seq AND \(AttemptRecord.mayStillRun))",
            read: { $1.lostAt = try $0.momentIfAny() }),
        Value(
            name: "unproved", sql: "EXISTS (SELECT 1 FROM unproved WHERE unproved.seq = op.seq)",
            read: { $1.isUnproved = try $0.next() }),
    ]

    /// SQL for the operations that the one of `op` needs; those that matter for the order alone are negative.
    static let needs = {
        let kinds = DependencyKind.allCases.filter(\.isOfOrder).map { "'\($0.rawValue)'" }.joined(separator: ", ")
        return "(SELECT group_concat(iif(kind IN (\(kinds)), -needs, needs)) FROM op_dep WHERE op_dep.seq = op.seq)"
    }()

    /// Returns all operations in a value of `needs`, and those of them that matter for the order alone.
    static func needs(in text: String?) -> (all: Set<Int64>, follows: Set<Int64>) {
        let numbers = (text ?? "").split(separator: ",").compactMap { Int64($0) }
        return (Set(numbers.map { Int64(clamping: $0.magnitude) }), Set(numbers.filter { $0 < 0 }.map { Int64(clamping: $0.magnitude) }))
    }

    static let columns = values.map(\.sql).joined(separator: ", ")

    /// `columns` with NULL for the bodies of request and response, which may be large.
    static let lightColumns = values.map { $0.isHeavy ? "NULL" : $0.sql }.joined(separator: ", ")

    /// The values that reads of files need of a write that waits.
    static let ofFiles = {
        let names = [
            "seq", "id", "principal", "upstream", "origin", "method", "target", "headers", "body_len", "lane", "viewer", "state",
            "accepted_at",
        ]
        return values.filter { names.contains($0.name) }
    }()

    /// - Throws: `UnreadableRow` with the name of the column, for a row that does not match the schema.
    static func operation(from row: Row) throws -> QueuedWrite {
        var reader = RowReader(row)
        return try operation(from: &reader)
    }

    /// - Parameter values: those that the row has.
    /// - Throws: as `operation(from:)` for a row.
    static func operation(from reader: inout RowReader, of values: [Value] = Self.values) throws -> QueuedWrite {
        var operation = blank
        do {
            for index in values.indices { try values[index].read(&reader, &operation) }
        } catch let error as UnreadableRow {
            throw UnreadableRow(column: error.column, name: values.indices.contains(error.column) ? values[error.column].name : nil)
        }
        return operation
    }

    /// The operation that every column is read into.
    private static let blank = QueuedWrite(
        sequence: 0, id: "", request: RequestHead(method: .get, origin: OriginAddress(scheme: .https, host: ""), target: ""),
        body: .none, upstream: "", lane: "", idempotencyKey: "", acceptedAt: .distantPast, nextAttemptAt: .distantPast)
}

// MARK: - Values

// The values of an operation's row that are not stored as they are in memory (docs/outbox.md#schema).
extension RowReader {
    mutating func moment() throws(UnreadableRow) -> Timestamp { Timestamp(milliseconds: try next()) }

    mutating func tickIfAny() throws(UnreadableRow) -> Tick? { try nextIfAny(Int64.self).map { Tick(number: $0) } }

    mutating func momentIfAny() throws(UnreadableRow) -> Timestamp? {
        guard let milliseconds: Int64 = try nextIfAny() else { return nil }
        return Timestamp(milliseconds: milliseconds)
    }

    mutating func keyIsClients() throws(UnreadableRow) -> Bool { try next(String.self) == "client" }

    mutating func principal() throws(UnreadableRow) -> String? {
        let name: String = try next()
        return name.isEmpty ? nil : name
    }

    mutating func newItem() throws(UnreadableRow) -> NewItemID? { try nextIfAny(String.self).map { NewItemID($0) } }

    mutating func method() throws(UnreadableRow) -> HTTPRequest.Method {
        guard let method = HTTPRequest.Method(try next(String.self)) else { throw unreadable }
        return method
    }

    mutating func origin() throws(UnreadableRow) -> OriginAddress {
        guard let origin = OriginAddress(url: try next()) else { throw unreadable }
        return origin
    }

    mutating func fields() throws(UnreadableRow) -> HTTPFields {
        guard let fields = FieldCodec.decode(try next()) else { throw unreadable }
        return fields
    }
}

extension OriginAddress {
    /// Parses the text produced by `url`; nil for any other text.
    fileprivate init?(url: String) {
        guard let scheme = [Scheme.https, .http].first(where: { url.hasPrefix("\($0.rawValue)://") }) else { return nil }
        let authority = url.dropFirst(scheme.rawValue.utf8.count + 3)
        let end = authority.lastIndex(of: "]").map { authority.index(after: $0) }
        let hostEnd = end ?? authority.firstIndex(of: ":") ?? authority.endIndex
        let host = authority[..<hostEnd].drop { $0 == "[" }.prefix { $0 != "]" }
        let port = authority[hostEnd...].dropFirst()
        guard !host.isEmpty, port.isEmpty || Int(port) != nil else { return nil }
        self.init(scheme: scheme, host: String(host), port: Int(port))
    }
}
