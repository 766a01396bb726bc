// The notes API on a socket: it can be started, stopped and restarted within one process (docs/outbox.md#faults).
import FoundationEssentials
import HTTPTypes
import OrderedCollections
package import RockpoolCore
import Synchronization

/// A running notes API. Its data outlives `stop` and lasts until the process ends.
package final class NotesServer: Sendable {
    /// The address of its listener.
    package let host: String
    /// The port of its listener, unchanged by `restart`.
    package let port: Int
    /// The server as an upstream's origin.
    package var origin: OriginAddress { OriginAddress(scheme: .http, host: host, port: port) }

    private let store: Mutex<NotesStore>
    private let sockets: Sockets
    private let clock: @Sendable () -> Timestamp
    /// Called after each change, before its reply is sent.
    private let keep: @Sendable (NotesStore) -> Void

    /// Starts a server; port 0 takes a free port. `seed` holds the first notes as objects of client members. Throws if the port cannot be
    /// bound.
    package static func start(
        host: String = "127.0.0.1", port: Int = 0, seed: [JSONValue] = [], settings: NotesSettings = NotesSettings(),
        clock: @escaping @Sendable () -> Timestamp = NotesServer.systemClock
    ) async throws -> NotesServer {
        try await start(host: host, port: port, store: NotesStore(seed: seed, settings: settings, now: clock()), clock: clock)
    }

    /// Starts a server with the data of another one. `keep` gets the data after each change.
    package static func start(
        host: String = "127.0.0.1", port: Int = 0, store: NotesStore,
        clock: @escaping @Sendable () -> Timestamp = NotesServer.systemClock, keep: @escaping @Sendable (NotesStore) -> Void = { _ in }
    ) async throws -> NotesServer {
        let sockets = Sockets()
        let bound = try await sockets.open(host: host, port: port)
        let server = NotesServer(host: host, port: bound, store: store, sockets: sockets, clock: clock, keep: keep)
        sockets.serve(with: server)
        return server
    }

    private init(
        host: String, port: Int, store: NotesStore, sockets: Sockets, clock: @escaping @Sendable () -> Timestamp,
        keep: @escaping @Sendable (NotesStore) -> Void
    ) {
        self.keep = keep
        self.host = host
        self.port = port
        self.store = Mutex(store)
        self.sockets = sockets
        self.clock = clock
    }

    /// Closes the listener and every connection; new connections are refused until `restart`.
    package func stop() async {
        await sockets.close()
    }

    /// Listens on the same port again, with the same data. Throws if the port cannot be bound.
    package func restart() async throws {
        _ = try await sockets.open(host: host, port: port)
        sockets.serve(with: self)
    }

    /// Runs `body` with exclusive access to the server's state.
    package func withStore<Result: Sendable>(_ body: (inout NotesStore) -> Result) -> Result { store.withLock { body(&$0) } }

    /// Forgets every idempotency key.
    package func forgetKeys() { store.withLock { $0.keys.forgetAll() } }

    /// Issues a valid token for a user, as `/v1/login` does.
    package func issueToken(to user: String) -> String { store.withLock { $0.issueToken(to: user) } }

    /// Invalidates every token; requests with them are 401 where a token is needed.
    package func revokeTokens() { store.withLock { ($0.users, $0.refreshers) = ([:], [:]) } }

    /// Invalidates every access token; refresh tokens stay valid.
    package func expireTokens() { store.withLock { $0.users = [:] } }

    /// Changes a note by merge patch without the clients' knowledge; nil if it does not exist.
    @discardableResult
    package func edit(note id: String, with patch: JSONValue) -> Note? {
        let now = clock()
        return store.withLock { store in
            let request = NotesRequest(method: .patch, target: "/v1/notes/\(id)", body: patch.serialized())
            let interference = store.interference
            store.interference = NoInterference()
            defer { store.interference = interference }
            return store.respond(to: request, now: now).hasEffect ? store.note(id: id) : nil
        }
    }

    /// The newest 50 000 requests, in order of arrival.
    package func log() -> [Seen] { store.withLock { Array($0.journal.lines) } }

    /// The number of requests with this key that changed anything: 1 means exactly once.
    package func effects(forKey key: String) -> Int { store.withLock { $0.journal.effectsByKey[key, default: 0] } }

    /// The number of requests that changed anything.
    package func effects() -> Int { store.withLock { $0.journal.effects } }

    /// The notes, in order of creation.
    package var notes: [Note] { store.withLock { Array($0.notes.values) } }

    /// A note by its id.
    package func note(id: String) -> Note? { store.withLock { $0.note(id: id) } }

    /// The comments of a note, in order of creation.
    package func comments(of id: String) -> [Comment] { store.withLock { $0.comments[id, default: []] } }

    /// The system's clock.
    package static let systemClock: @Sendable () -> Timestamp = {
        Timestamp(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)))
    }
}

extension NotesServer {
    var bodyLimit: Int64 { store.withLock { $0.settings.bodyLimit.bytes } }
    func now() -> Timestamp { clock() }

    func arrive(_ request: NotesRequest) -> NotesStore.Arrival {
        let now = clock()
        return keeping { $0.arrive(request, now: now) }
    }

    func carryOut(_ ticket: NotesStore.Ticket) -> NotesStore.Delivery {
        let now = clock()
        return keeping { $0.carryOut(ticket, now: now) }
    }

    private func keeping<Result: Sendable>(_ body: (inout NotesStore) -> Result) -> Result {
        store.withLock { store in
            let before = store.revision
            defer { if store.revision != before { keep(store) } }
            return body(&store)
        }
    }
}
