// The order of the fleet's transactions: one writer at a time, on the newest state (docs/fleet.md#transactions).
import RockpoolCore
import Synchronization

/// The writer's side of the shared database. Called on the writer's thread, but for `online` and `offline`.
final class SharedLog: Sendable {
    /// Why transactions are not possible now.
    enum Absence: Error, Equatable {
        /// The database is away, with the reason.
        case away(String)
        /// This node takes no part any more until a person has done something, with the reason.
        case ended(String)
        /// This node was fenced, or has begun anew: it registers again.
        case fenced

        var words: String {
            switch self {
            case .away(let detail), .ended(let detail): detail
            case .fenced: "this node was fenced and registers again"
            }
        }

        /// True if only a person can change that.
        var isEnd: Bool { if case .ended = self { true } else { false } }
    }

    private struct State {
        var connection: PostgreSQLConnection?
        /// That of the transaction under way, to whose end nothing runs on another one; nil without one.
        var transaction: PostgreSQLConnection?
        var lease: NodeLease?
        var absence = Absence.away("not connected yet")
        /// The timeline of the server that this connection was made to.
        var timeline: Int64 = 0
        /// True until the first transaction of the connection.
        var isNew = false
        /// True in a transaction that may bring everything that this node has.
        var isJoining = false
        var clockOffset: Int64 = 0
        /// How often the lock was had, and how long that took in sum.
        var waited: (transactions: Int, sum: Duration) = (0, .zero)
    }

    let node: String
    private let state = Mutex(State())
    private static let page = 2000
    private static let patience = Duration.seconds(5)

    /// True if no commit counts that does not wait for a standby.
    private let requiresSynchronous: Bool

    init(node: String, requiresSynchronous: Bool) { (self.node, self.requiresSynchronous) = (node, requiresSynchronous) }

    /// The lease in force; nil while there is none.
    var lease: NodeLease? { state.withLock(\.lease) }

    /// The reason why no transaction is possible; nil while one is.
    var absence: Absence? { state.withLock { $0.connection == nil ? $0.absence : nil } }

    // MARK: - Standing

    func online(_ connection: PostgreSQLConnection, lease: NodeLease, standing: SharedServer.Standing) {
        state.withLock { state in
            (state.connection, state.lease, state.timeline, state.isNew) = (connection, lease, standing.timeline, true)
            state.clockOffset = standing.clockOffset
        }
    }

    /// The database's time minus this node's, in milliseconds.
    var clockOffset: Int64 { state.withLock(\.clockOffset) }

    func renewed(_ lease: NodeLease) { state.withLock { if $0.lease?.epoch == lease.epoch { $0.lease = lease } } }

    /// Gives up the connection. The lease ends by its time: what is being sent may go on until then. A transaction under way goes on on the
    /// connection that it has.
    /// - Parameter lost: the connection that is of no more use; no effect if there is another one by now. Nil for any.
    func offline(_ absence: Absence, lost: PostgreSQLConnection? = nil) {
        state.withLock { state in
            if let lost, let connection = state.connection, connection !== lost { return }
            (state.connection, state.absence) = (nil, absence)
            if absence == .fenced { state.lease = nil }
        }
    }

    // MARK: - Transactions

    /// True if nothing was read on this connection yet.
    var isNew: Bool { state.withLock(\.isNew) }

    /// Reads the items after `position`, while others may write.
    /// - Throws: `Absence`; whatever `take` throws.
    func read(after position: Position, _ take: ([SharedItem]) throws -> Void) throws {
        let (connection, lease) = state.withLock { ($0.connection, $0.lease) }
        guard let connection, let lease else { throw state.withLock(\.absence) }
        let results = try failing(connection) { try connection.run(look(after: position).joined(separator: "; "), within: Self.patience) }
        try check(results, of: lease, at: position)
        let (count, items) = (results.last?.count ?? 0, (results.last ?? []).compactMap(Self.item))
        // Of several pages, and of the bodies that they name, all must be of one moment.
        if count < Self.page, !items.contains(where: \.isBody) { return try take(items) }
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        state.withLock { $0.transaction = connection }
        do {
            let rows = try failing(connection) {
                try connection.run("\(begin); \(Self.feed(after: position.number))", within: Self.patience)
            }.last
            try handOn(rows ?? [], of: connection, to: take)
            try run("COMMIT")
        } catch {
            abandon()
            throw error
        }
        state.withLock { $0.transaction = nil }
    }

    /// What a node asks first, and its feed.
    private func look(after position: Position) -> [String] {
        [
            "SELECT epoch, fenced FROM rockpool.node WHERE id = '\(node)'", "SELECT coalesce(max(n), 0) FROM rockpool.item",
            SharedSchema.identity(at: position.number), Self.feed(after: position.number),
        ]
    }

    /// - Parameter results: those of `look` come last.
    /// - Throws: `Absence` if this node was fenced, or if the server is another one, has less than this node, or something else.
    private func check(_ results: [[[[UInt8]?]]], of lease: NodeLease, at position: Position) throws {
        guard results.count >= 4, let own = results[results.count - 4].first, own[0].number == lease.epoch, own[1].text == "f" else {
            offline(.fenced)
            throw Absence.fenced
        }
        if let absence = absence(
            at: position, last: results[results.count - 3].first?[0].number ?? 0, results[results.count - 2].first ?? [])
        {
            offline(absence)
            throw absence
        }
        state.withLock { $0.isNew = false }
    }

    /// The reason why a server is not the one that this node has seen; nil if it is.
    /// - Parameters:
    ///   - last: the number of its last change.
    ///   - identity: as `SharedSchema.identity` gives it.
    private func absence(at position: Position, last: Int64, _ identity: [[UInt8]?]) -> Absence? {
        guard identity.count == 6 else { return .away("no answer about its history") }
        let timeline = identity[0].text.flatMap { Int64($0, radix: 16) } ?? 0
        guard timeline == state.withLock(\.timeline) else { return .away("another server was promoted, with timeline \(timeline)") }
        let standing = SharedServer.Durability(
            standbys: identity[1].text ?? "", waits: identity[2].text ?? "", isFsync: identity[3].text != "off")
        if requiresSynchronous, !standing.isSynchronous { return .away("\(standing.lack) (outbox.require_synchronous)") }
        guard last >= position.number else { return .ended(Self.lacks(last, of: position.number)) }
        guard let word = position.word, let first = identity[5].number, first <= position.number, identity[4].number != word else {
            return nil
        }
        return .ended(Self.isOther(at: position.number))
    }

    /// Says that a server has another history than a node has seen.
    static func isOther(at position: Int64) -> String {
        "it has other changes than this node has seen (at \(position)): it is an older copy that has gone on; see docs/fleet.md#promotion"
    }

    /// What a node has seen last.
    struct Position: Sendable, Equatable {
        var number: Int64 = 0
        /// The word of that commit; nil if it has none, or it is not known.
        var word: Int64?
    }

    /// Says that a server has less than a node has seen.
    static func lacks(_ last: Int64, of position: Int64) -> String {
        "it lacks changes that this node has seen (\(last) of \(position)): it is an older copy; see docs/fleet.md#promotion"
    }

    /// Begins a transaction as the only writer of the fleet. PostgreSQL ends that of a node that does nothing for 2 s, such as one that was
    /// stopped; another waits longer than that, and less than for an answer.
    /// - Parameter isJoining: true if this node may bring everything that it has, which takes longer.
    /// - Returns: the items after `position`, in pages that `take` receives.
    /// - Throws: `Absence`; whatever `take` throws.
    func begin(after position: Position, isJoining: Bool, _ take: ([SharedItem]) throws -> Void) throws {
        let (connection, lease) = state.withLock { ($0.connection, $0.lease) }
        guard let connection, let lease else { throw state.withLock(\.absence) }
        let statements = [
            SharedSchema.begin, SharedSchema.durability,
            "SET LOCAL idle_in_transaction_session_timeout = '\(isJoining ? 60 : 2)s'", "SET LOCAL lock_timeout = '4s'", SharedSchema.lock,
        ]
        let sql = (statements + look(after: position)).joined(separator: "; ")
        state.withLock { $0.transaction = connection }
        let begun = ContinuousClock.now
        let results = try failing(connection) { try connection.run(sql, within: Self.patience) }
        let span = ContinuousClock.now - begun
        try check(results, of: lease, at: position)
        state.withLock { state in
            state.isJoining = isJoining
            state.waited = (state.waited.transactions + 1, state.waited.sum + span)
        }
        try handOn(results.last ?? [], of: connection, to: take)
    }

    /// How often this node had the lock since its start, and how long it waited for that in sum.
    var waited: (transactions: Int, sum: Duration) { state.withLock(\.waited) }

    /// Hands a page on, and every following one.
    private func handOn(_ page: [[[UInt8]?]], of connection: PostgreSQLConnection, to take: ([SharedItem]) throws -> Void) throws {
        var rows = page
        while true {
            let items = rows.compactMap(Self.item)
            try take(items)
            guard rows.count == Self.page, let end = items.last?.number else { return }
            rows = try failing(connection) { try connection.run(Self.feed(after: end), within: .seconds(30)) }.first ?? []
        }
    }

    private static func feed(after position: Int64) -> String {
        """
        SELECT tbl, encode(key, 'hex'), part, n, encode(data, 'hex'), (SELECT word FROM rockpool.word WHERE word.n = item.n)
            FROM rockpool.item WHERE n > \(position) ORDER BY n LIMIT \(page)
        """
    }

    private static func item(_ row: [[UInt8]?]) -> SharedItem? {
        guard row.count == 6, let table = row[0].text, let key = row[1].fromHex, let part = row[2].number, let number = row[3].number
        else { return nil }
        return SharedItem(table: table, key: key, part: Int(part), number: number, word: row[5].number, data: row[4].fromHex)
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
                    .numbers(claimed.map(\.sequence)), .texts(claimed.map(\.upstream)),
                    .texts(claimed.map { IndexedText.inColumn($0.lane) }),
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
                    .texts(part.map { $0.operation?.principal.map(IndexedText.inColumn) }),
                    .texts(part.map { $0.operation?.clientKey.map(IndexedText.inColumn) }),
                    .texts(part.map { $0.operation?.state }), .text(node), .numbers(claimed.isEmpty ? released : []),
                ])
            // A row of another operation stands under the number of one of them: this node's numbers are not those of the fleet.
            guard rows.count == part.count else {
                let reason = Absence.ended("another operation has the number of one here: it is an older copy; see docs/fleet.md#promotion")
                offline(reason)
                throw reason
            }
            last = max(last, rows.compactMap { $0.first?.map { $0.reduce(0) { $0 << 8 | Int64($1) } } }.max() ?? 0)
        }
        return last
    }

    /// Commits.
    /// - Parameter news: what this commit is known by if it changes something; the other nodes, which poll as well, are woken then.
    /// - Throws: `Absence`; the commit may have happened.
    func commit(_ news: Position?) throws {
        guard let connection = state.withLock(\.transaction) else { throw state.withLock(\.absence) }
        let patience = state.withLock(\.isJoining) ? .seconds(60) : Self.patience
        let word = news.flatMap { news in news.word.map { SharedSchema.word($0, at: news.number) + "; NOTIFY rockpool; COMMIT" } }
        _ = try failing(connection) { try connection.run(word ?? "COMMIT", within: patience) }
        state.withLock { $0.transaction = nil }
        // A cancelled wait for the standby is no error to PostgreSQL: it warns, and the commit may be gone after a promotion.
        guard connection.lastWarnings.isEmpty else {
            let warning = PostgreSQLError.warned(connection.lastWarnings.joined(separator: "; "))
            offline(.away("\(warning)"), lost: connection)
            throw Absence.away("\(warning)")
        }
    }

    /// Rolls back; no effect without a transaction.
    func abandon() {
        let transaction = state.withLock { state in
            defer { state.transaction = nil }
            return state.transaction
        }
        guard let transaction else { return }
        do { try transaction.run("ROLLBACK", within: .seconds(2)) } catch { offline(.away("\(error)"), lost: transaction) }
    }

    /// Runs `body` in a transaction of its own, without the lock: what it adds is named by nothing yet. Its loss would be noticed later.
    /// - Throws: `Absence`; whatever `body` throws.
    func ahead(_ body: () throws -> Void) throws {
        guard let connection = state.withLock(\.connection) else { throw state.withLock(\.absence) }
        state.withLock { $0.transaction = connection }
        do {
            try run("BEGIN ISOLATION LEVEL READ COMMITTED")
            // Two nodes may add the same, and the commit that names it comes later: it waits for the disk.
            try run("SET LOCAL lock_timeout = '20s'")
            try run("SET LOCAL synchronous_commit = off")
            try body()
            try run("COMMIT")
        } catch {
            abandon()
            throw error
        }
        state.withLock { $0.transaction = nil }
    }

    /// Runs a statement in the transaction.
    @discardableResult
    func run(_ sql: String, _ parameters: [PostgreSQLValue] = []) throws -> [[[UInt8]?]] {
        guard let connection = state.withLock(\.transaction) else { throw state.withLock(\.absence) }
        return try failing(connection) { try connection.run(sql, parameters, within: .seconds(30)) }
    }

    /// Runs a statement that only reads, before there is a transaction.
    func ask(_ sql: String, _ parameters: [PostgreSQLValue]) throws -> [[[UInt8]?]] {
        guard let connection = state.withLock(\.connection) else { throw state.withLock(\.absence) }
        return try failing(connection) { try connection.run(sql, parameters, within: .seconds(30)) }
    }

    /// Gives up the connection when it is of no more use. A refusal of the server leaves it in use, unless the server is going down, or
    /// another node holds the lock for too long.
    private func failing<T>(_ connection: PostgreSQLConnection, _ body: () throws -> T) throws -> T {
        do {
            return try body()
        } catch PostgreSQLError.refused(let state, let detail) where !["57", "53", "55", "25", "08"].contains(state.prefix(2)) {
            throw PostgreSQLError.refused(state: state, detail)
        } catch {
            offline(.away("\(error)"), lost: connection)
            throw Absence.away("\(error)")
        }
    }
}

/// The newest version of one part of one row (docs/fleet.md#shared).
struct SharedItem: Sendable {
    var table: String
    /// The primary key, encoded as `RowBytes`.
    var key: [UInt8]
    /// 0 for the row without its bodies; else the number of a body.
    var part: Int
    /// The position in the order of all changes; 0 before it has one.
    var number: Int64 = 0
    /// The word of the commit whose last number this is; nil for any other number, and for a commit of an older version.
    var word: Int64?
    /// Encoded as `RowBytes`; nil when the row is gone.
    var data: [UInt8]?
    /// The columns of an operation that the shared database checks or lists.
    var operation: SharedOperation?

    /// True for the row of a body in a file.
    var isBody: Bool { table == "blob" && data != nil }
    /// True for the row of an operation.
    var isOperation: Bool { table == "op" && part == 0 }
}

/// The columns of an operation that are columns in the shared database too.
struct SharedOperation: Sendable {
    var id: String
    var upstream: String
    var principal: String?
    var clientKey: String?
    var state: String
}

/// A text in an index of the shared database. PostgreSQL refuses a row whose index entry is longer than 2,704 bytes, and with it the whole
/// transaction.
enum IndexedText {
    /// Bytes of a text that is kept as it is.
    static let limit = 2_000
    private static let mark = "sha256:"

    /// The text, or a digest of a long one.
    static func of(_ text: String) -> String {
        text.utf8.count <= limit ? text : mark + CacheStore.digest(of: Array(text.utf8))
    }

    /// The same for a column of text, which takes no NUL.
    static func inColumn(_ text: String) -> String { text.utf8.contains(0) ? mark + CacheStore.digest(of: Array(text.utf8)) : of(text) }

    /// True if a text may be a digest in place of a long one.
    static func mayBeDigest(_ text: String) -> Bool { text.utf8.count == mark.utf8.count + 64 && text.hasPrefix(mark) }
}

/// An operation in flight, with the node that sends it.
struct SharedClaim: Sendable {
    var sequence: Int64
    var upstream: String
    var lane: String
    var node: String
    var epoch: Int64
}

/// The membership of a node. Times are those of its own steady clock, which goes on while the machine sleeps (docs/fleet.md#leases).
struct NodeLease: Sendable, Equatable {
    /// How long the shared database waits for the next renewal before others take over.
    static let length = Duration.seconds(15)
    /// After this time without a renewal, the node stops sending by itself.
    static let trusted = Duration.seconds(12)
    /// Time between two renewals.
    static let interval = Duration.seconds(3)

    let epoch: Int64
    /// Before the query of the last renewal was sent.
    var renewedAt: ContinuousClock.Instant

    /// The moment from which nothing may be sent any more.
    var end: ContinuousClock.Instant { renewedAt + Self.trusted }
}
