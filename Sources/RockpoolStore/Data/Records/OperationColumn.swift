// One column of `op`: its name, and how it is inserted, selected, read and inherited (docs/outbox.md#schema).
import FoundationEssentials
import GRDB
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
        /// A request target, its secrets sealed in every case.
        case sealedTarget
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
    var given: String {
        switch form {
        case .plain: "?"
        case .sealed: "sealed(?)"
        case .sealedName: "sealed_name(?)"
        case .sealedTarget: "sealed_target(?)"
        }
    }

    /// Its value in a SELECT.
    var selected: String {
        switch form {
        case .sealed: "unsealed(\(name))"
        case .sealedTarget: "unsealed_target(\(name))"
        case .plain, .sealedName: name
        }
    }

    // MARK: statements

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
