// The order of the fleet's transactions: one writer at a time, on the newest state (docs/fleet.md#transactions).
import RockpoolCore
import Synchronization

/// The writer's side of the shared database. Called on the writer's thread, but for `online` and `offline`.
final class SharedLog: Sendable {
    /// Why transactions are not possible now.
    enum Absence: Error, Equatable {
        /// The database is away, with the reason.
        case away(String)
        /// This node was fenced, or has begun anew: it registers again.
        case fenced
    }

    private struct State {
        var connection: PostgreSQLConnection?
        var lease: NodeLease?
        var absence = Absence.away("not connected yet")
        var isLazy = false
        /// True until the first transaction of the connection.
        var isNew = false
        /// True in a transaction that may bring everything that this node has.
        var isJoining = false
        var clockOffset: Int64 = 0
        /// Connections given up while a commit waited.
        var lost = 0
    }

    let node: String
    private let state = Mutex(State())
    private static let page = 2000
    private static let patience = Duration.seconds(5)

    init(node: String) { self.node = node }

    /// The lease in force; nil while there is none.
    var lease: NodeLease? { state.withLock(\.lease) }

    /// The reason why no transaction is possible; nil while one is.
    var absence: Absence? { state.withLock { $0.connection == nil ? $0.absence : nil } }

    // MARK: standing

    func online(_ connection: PostgreSQLConnection, lease: NodeLease, standing: SharedServer.Standing) {
        state.withLock { state in
            (state.connection, state.lease, state.isLazy, state.isNew) = (connection, lease, standing.isLazy, true)
            state.clockOffset = standing.clockOffset
        }
    }

    /// The database's time minus this node's, in milliseconds.
    var clockOffset: Int64 { state.withLock(\.clockOffset) }

    func renewed(_ lease: NodeLease) { state.withLock { if $0.lease?.epoch == lease.epoch { $0.lease = lease } } }

    /// Gives up the connection. The lease ends by its time: what is being sent may go on until then.
    func offline(_ absence: Absence) {
        state.withLock { state in
            (state.connection, state.absence) = (nil, absence)
            if absence == .fenced { state.lease = nil }
        }
    }

    // MARK: transactions

    /// True if nothing was read on this connection yet.
    var isNew: Bool { state.withLock(\.isNew) }

    /// Reads the items after `position`, while others may write.
    /// - Throws: `Absence`; whatever `take` throws.
    func read(after position: Int64, _ take: ([SharedItem]) throws -> Void) throws {
        let (connection, lease) = state.withLock { ($0.connection, $0.lease) }
        guard let connection, let lease else { throw state.withLock(\.absence) }
        let results = try failing { try connection.run(look(after: position).joined(separator: "; "), within: Self.patience) }
        try check(results, of: lease, at: position)
        let (count, items) = (results.last?.count ?? 0, (results.last ?? []).compactMap(Self.item))
        // Of several pages, and of the bodies that they name, all must be of one moment.
        if count < Self.page, !items.contains(where: \.isBody) { return try take(items) }
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        let rows = try failing { try connection.run("\(begin); \(Self.feed(after: position))", within: Self.patience) }.last ?? []
        do { try handOn(rows, of: connection, to: take) } catch {
            abandon()
            throw error
        }
        _ = try failing { try connection.run("COMMIT", within: .seconds(5)) }
    }

    /// What a node asks first, and its feed.
    private func look(after position: Int64) -> [String] {
        [
            "SELECT epoch, fenced FROM rockpool.node WHERE id = '\(node)'", "SELECT coalesce(max(n), 0) FROM rockpool.item",
            Self.feed(after: position),
        ]
    }

    /// - Parameter results: those of `look` come last.
    /// - Throws: `Absence` if this node was fenced, or if the server has less than this node.
    private func check(_ results: [[[[UInt8]?]]], of lease: NodeLease, at position: Int64) throws {
        guard results.count >= 3, let own = results[results.count - 3].first, own[0].number == lease.epoch, own[1].text == "f" else {
            offline(.fenced)
            throw Absence.fenced
        }
        let last = results[results.count - 2].first?[0].number ?? 0
        guard last < position else { return state.withLock { $0.isNew = false } }
        let lost = Self.lacks(last, of: position)
        offline(.away(lost))
        throw Absence.away(lost)
    }

    /// Says that a server has less than a node has seen.
    static func lacks(_ last: Int64, of position: Int64) -> String {
        "it lacks changes that this node has seen (\(last) of \(position)): it is an older copy; see docs/fleet.md#promotion"
    }

    /// Begins a transaction as the only writer of the fleet.
    /// - Parameter isJoining: true if this node may bring everything that it has, which takes longer.
    /// - Returns: the items after `position`, in pages that `take` receives.
    /// - Throws: `Absence`; whatever `take` throws.
    func begin(after position: Int64, isJoining: Bool, _ take: ([SharedItem]) throws -> Void) throws {
        let (connection, lease, isLazy) = state.withLock { ($0.connection, $0.lease, $0.isLazy) }
        guard let connection, let lease else { throw state.withLock(\.absence) }
        let statements = [
            SharedSchema.begin, isLazy ? "SET LOCAL synchronous_commit = on" : nil,
            "SET LOCAL idle_in_transaction_session_timeout = '\(isJoining ? 60 : 5)s'", SharedSchema.lock,
        ]
        let sql = (statements.compactMap(\.self) + look(after: position)).joined(separator: "; ")
        let results = try failing { try connection.run(sql, within: Self.patience) }
        try check(results, of: lease, at: position)
        state.withLock { $0.isJoining = isJoining }
        try handOn(results.last ?? [], of: connection, to: take)
    }

    /// Hands a page on, and every following one.
    private func handOn(_ page: [[[UInt8]?]], of connection: PostgreSQLConnection, to take: ([SharedItem]) throws -> Void) throws {
        var rows = page
        while true {
            let items = rows.compactMap(Self.item)
            try take(items)
            guard rows.count == Self.page, let end = items.last?.number else { return }
            rows = try failing { try connection.run(Self.feed(after: end), within: .seconds(30)) }.first ?? []
        }
    }

    private static func feed(after position: Int64) -> String {
        """
        SELECT tbl, encode(key, 'hex'), part, n, encode(data, 'hex') FROM rockpool.item WHERE n > \(position) ORDER BY n LIMIT \(page)
        """
    }

    private static func item(_ row: [[UInt8]?]) -> SharedItem? {
        guard row.count == 5, let table = row[0].text, let key = row[1].fromHex, let part = row[2].number, let number = row[3].number
        else { return nil }
        return SharedItem(table: table, key: key, part: Int(part), number: number, data: row[4].fromHex)
    }

    /// Adds what has changed to the transaction.
    /// - Parameters:
    ///   - replaced: the keys of counts that have another key now.
    ///   - released: the operations that no node has in flight any more.
    /// - Returns: the new position of this node; nil when nothing was added.
    /// - Throws: `Absence`, `PostgreSQLError.refused` for what the database itself does not permit.
    func ship(_ items: [SharedItem], replaced: [[UInt8]], released: [Int64], claimed: [SharedClaim]) throws -> Int64? {
        guard !items.isEmpty else { return nil }
        if !replaced.isEmpty { try run(SharedSchema.replacing, [.bytes(replaced)]) }
        if !claimed.isEmpty {
            // A lane must be free before another node has it.
            if !released.isEmpty { try run(SharedSchema.releasing, [.numbers(released)]) }
            try run(
                SharedSchema.claiming,
                [
                    .numbers(claimed.map(\.sequence)), .texts(claimed.map(\.upstream)), .texts(claimed.map { IndexedText.of($0.lane) }),
                    .texts(claimed.map(\.node)), .numbers(claimed.map(\.epoch)),
                ])
        }
        var last: Int64 = 0
        for start in stride(from: 0, to: items.count, by: 500) {
            let part = items[start..<min(items.count, start + 500)]
            let rows = try run(
                SharedSchema.shipping,
                [
                    .texts(part.map(\.table)), .bytes(part.map(\.key)), .numbers(part.map { Int64($0.part) }), .bytes(part.map(\.data)),
                    .texts(part.map { $0.operation?.id }), .texts(part.map { $0.operation?.upstream }),
                    .texts(part.map { $0.operation?.principal }), .texts(part.map { $0.operation?.clientKey.map(IndexedText.of) }),
                    .texts(part.map { $0.operation?.state }), .text(node), .numbers(claimed.isEmpty ? released : []),
                ])
            last = max(last, rows.compactMap { $0.first?.map { $0.reduce(0) { $0 << 8 | Int64($1) } } }.max() ?? 0)
        }
        return last
    }

    /// Commits.
    /// - Parameter isNews: true to wake the other nodes, which poll as well.
    /// - Throws: `Absence`; the commit may have happened.
    func commit(notifying isNews: Bool) throws {
        guard let connection = state.withLock(\.connection) else { throw state.withLock(\.absence) }
        let patience = state.withLock(\.isJoining) ? .seconds(60) : Self.patience
        _ = try failing { try connection.run(isNews ? "NOTIFY rockpool; COMMIT" : "COMMIT", within: patience) }
        // A cancelled wait for the standby is no error to PostgreSQL: it warns, and the commit may be gone after a promotion.
        guard connection.lastWarnings.isEmpty else {
            let warning = PostgreSQLError.warned(connection.lastWarnings.joined(separator: "; "))
            offline(.away("\(warning)"))
            throw Absence.away("\(warning)")
        }
    }

    /// Rolls back; no effect without a transaction.
    func abandon() {
        guard let connection = state.withLock(\.connection) else { return }
        do { try connection.run("ROLLBACK", within: .seconds(2)) } catch { offline(.away("\(error)")) }
    }

    /// Runs a statement in the transaction.
    @discardableResult
    func run(_ sql: String, _ parameters: [PostgreSQLValue] = []) throws -> [[[UInt8]?]] {
        guard let connection = state.withLock(\.connection) else { throw state.withLock(\.absence) }
        return try failing { try connection.run(sql, parameters, within: .seconds(30)) }
    }

    /// Gives up the connection when it is of no more use. A refusal of the server leaves it in use, unless the server is going down, or
    /// another node holds the lock for too long.
    private func failing<T>(_ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch PostgreSQLError.refused(let state, let detail) where !["57", "53", "55", "25", "08"].contains(state.prefix(2)) {
            throw PostgreSQLError.refused(state: state, detail)
        } catch {
            offline(.away("\(error)"))
            throw Absence.away("\(error)")
        }
    }
}
