// How the shared database is reached, and what an acknowledgement of it survives (docs/fleet.md#acknowledgement).

/// The address of the shared database, with the words that make a dead server known within seconds.
struct SharedServer: Sendable {
    /// The name in `pg_stat_activity`, after `rockpool/`.
    let node: String
    let url: String

    /// The last word of a name counts, and those of the address come last: it may set any of them.
    private var words: [(name: String, value: String)] {
        [
            ("target_session_attrs", "read-write"), ("connect_timeout", "2"), ("keepalives_idle", "2"), ("keepalives_interval", "1"),
            ("keepalives_count", "3"), ("tcp_user_timeout", "4000"), ("application_name", "rockpool/\(node)"),
            ("sslmode", "verify-full"), ("client_encoding", "UTF8"), ("dbname", url),
        ]
    }

    /// One of the servers of the address; nil for what libpq finds by itself.
    typealias Place = (host: String, port: String)?

    /// The servers of the address. libpq takes the first that answers, which after a promotion may be the old primary.
    private var places: [Place] {
        let authority = url.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" && $0 != "?" }
        let hosts = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        guard hosts.contains(","), !hosts.contains("%") else { return [nil] }
        return hosts.split(separator: ",").map { part in
            let colon = part.lastIndex(of: ":").flatMap { part[$0...].contains("]") ? nil : $0 }
            let host = part[..<(colon ?? part.endIndex)].filter { $0 != "[" && $0 != "]" }
            return (String(host), colon.map { String(part[part.index(after: $0)...]) } ?? "5432")
        }
    }

    func connect(to place: Place) throws(PostgreSQLError) -> PostgreSQLConnection {
        try PostgreSQLConnection(words + (place.map { [("host", $0.host), ("port", $0.port)] } ?? []))
    }

    /// Connects to the primary: of several servers that take writes, that of the highest timeline.
    /// - Parameter wall: this node's time in milliseconds.
    /// - Throws: the error of the last server when there is none.
    func connect(wall: () -> Int64) throws(PostgreSQLError) -> (connection: PostgreSQLConnection, standing: Standing, place: Place) {
        var best: (connection: PostgreSQLConnection, standing: Standing, place: Place)?
        var failure = PostgreSQLError.unreachable("the address names no server")
        for place in places {
            do throws(PostgreSQLError) {
                let connection = try connect(to: place)
                let standing = try Self.standing(of: connection, wall: wall)
                if standing.timeline > best?.standing.timeline ?? 0 { best = (connection, standing, place) }
            } catch { failure = error }
        }
        guard let best else { throw failure }
        return best
    }

    /// Smaller differences of clocks, in milliseconds, are not corrected: a measurement is no better than the network.
    private static let clockStep = 10_000.0

    /// What a commit waits for.
    struct Durability: Sendable, Equatable {
        /// `synchronous_standby_names`.
        var standbys: String
        /// `synchronous_commit`.
        var waits: String
        var isFsync: Bool

        /// True if a commit waits for a standby, and `fsync` is on.
        var isSynchronous: Bool { !standbys.isEmpty && waits != "off" && waits != "local" && isFsync }
        /// Why it is not.
        var lack: String { isFsync ? "a commit does not wait for a standby" : "the server runs with fsync = off" }
    }

    /// What a server is, and what its commits survive.
    struct Standing: Sendable, Equatable {
        /// Rises with every promotion of a standby.
        var timeline: Int64
        /// True if a commit waits for a standby, and `fsync` is on.
        var isSynchronous: Bool
        /// True if the server never waits for its disk (`fsync`): nothing is certain to survive a power failure.
        var isVolatile: Bool
        /// The server's time minus this node's, in milliseconds, as a multiple of `clockStep`.
        var clockOffset: Int64
        /// The encoding of the database's texts.
        var encoding: String
    }

    /// Those that keep every text. Another one refuses a row with a character that it does not have.
    static let encodings = ["UTF8", "SQL_ASCII"]

    /// - Parameter wall: this node's time in milliseconds.
    /// - Throws: `.refused` for a standby.
    static func standing(of connection: PostgreSQLConnection, wall: () -> Int64) throws(PostgreSQLError) -> Standing {
        let before = wall()
        let rows =
            try connection.run(
                """
                SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8), current_setting('synchronous_standby_names'),
                    current_setting('synchronous_commit'), current_setting('fsync'),
                    (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text, current_setting('server_encoding')
                """, within: .seconds(5)
            ).first?.first ?? []
        let texts = rows.map { $0.map { String(decoding: $0, as: UTF8.self) } ?? "" }
        guard texts.count == 6, let timeline = Int64(texts[0], radix: 16), let time = Int64(texts[4]) else {
            throw .refused(state: "", "no answer about its timeline")
        }
        let durability = Durability(standbys: texts[1], waits: texts[2], isFsync: texts[3] != "off")
        return Standing(
            timeline: timeline, isSynchronous: durability.isSynchronous, isVolatile: !durability.isFsync,
            clockOffset: Int64((Double(time - (before + wall()) / 2) / clockStep).rounded() * clockStep), encoding: texts[5])
    }
}
