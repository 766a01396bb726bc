// The notes API on a socket: started, stopped and brought back within one process (outbox.md §3.2).
import FoundationEssentials
import HTTPTypes
import OrderedCollections
package import RockpoolCore
import Synchronization

/// A running notes API. Its data outlives `stop`; only the process ends it.
package final class NotesServer: Sendable {
    /// The address it listens on.
    package let host: String
    /// The port it listens on, the same after `restart`.
    package let port: Int
    /// Where it is, as an upstream's origin.
    package var origin: OriginAddress { OriginAddress(scheme: .http, host: host, port: port) }

    private let store: Mutex<NotesStore>
    private let sockets: Sockets
    private let clock: @Sendable () -> Timestamp

    /// Starts a server; port 0 takes a free one. `seed` are the first notes, objects of client members. Throws what binding throws.
    package static func start(
        host: String = "127.0.0.1", port: Int = 0, seed: [JSONValue] = [], settings: NotesSettings = NotesSettings(),
        clock: @escaping @Sendable () -> Timestamp = NotesServer.systemClock
    ) async throws -> NotesServer {
        let sockets = Sockets()
        let bound = try await sockets.open(host: host, port: port)
        let server = NotesServer(
            host: host, port: bound, store: NotesStore(seed: seed, settings: settings, now: clock()), sockets: sockets, clock: clock)
        sockets.serve(with: server)
        return server
    }

    private init(host: String, port: Int, store: NotesStore, sockets: Sockets, clock: @escaping @Sendable () -> Timestamp) {
        self.host = host
        self.port = port
        self.store = Mutex(store)
        self.sockets = sockets
        self.clock = clock
    }

    /// Closes the listener and every connection; until `restart` connects are refused.
    package func stop() async {
        await sockets.close()
    }

    /// Listens on the same port again, with the same data. Throws what binding throws.
    package func restart() async throws {
        _ = try await sockets.open(host: host, port: port)
        sockets.serve(with: self)
    }

    /// The faults in force. To change one of several that count down, use `inject`.
    package var faults: Faults {
        get { store.withLock { $0.faults } }
        set { store.withLock { $0.faults = newValue } }
    }

    /// Changes the faults in one step.
    package func inject(_ change: (inout Faults) -> Void) {
        store.withLock { change(&$0.faults) }
    }

    /// Forgets every idempotency key.
    package func forgetKeys() { store.withLock { $0.keys.forgetAll() } }

    /// A live token of a user, as `/v1/login` gives it.
    package func issueToken(to user: String) -> String { store.withLock { $0.issueToken(to: user) } }

    /// Ends every token; requests with them are 401 where one is needed.
    package func revokeTokens() { store.withLock { ($0.users, $0.refreshers) = ([:], [:]) } }

    /// Ends every access token; refresh tokens stay good.
    package func expireTokens() { store.withLock { $0.users = [:] } }

    /// Changes a note behind the clients' backs, by merge patch; nil when it is not there.
    @discardableResult
    package func edit(note id: String, _ patch: JSONValue) -> Note? {
        let now = clock()
        return store.withLock { store in
            let request = NotesRequest(method: .patch, target: "/v1/notes/\(id)", body: patch.serialized())
            let faults = store.faults
            store.faults = Faults()
            defer { store.faults = faults }
            return store.respond(to: request, now: now).hasEffect ? store.note(id) : nil
        }
    }

    /// Every request it saw, in order of arrival; the newest 50 000.
    package func log() -> [Seen] { store.withLock { Array($0.journal.lines) } }

    /// How often requests with this key changed anything: 1 is exactly once.
    package func effects(forKey key: String) -> Int { store.withLock { $0.journal.effectsByKey[key, default: 0] } }

    /// How many requests changed anything.
    package func effects() -> Int { store.withLock { $0.journal.effects } }

    /// The notes it holds, in order of creation.
    package var notes: [Note] { store.withLock { Array($0.notes.values) } }

    /// A note by its id.
    package func note(_ id: String) -> Note? { store.withLock { $0.note(id) } }

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
        return store.withLock { $0.arrive(request, now: now) }
    }

    func carryOut(_ ticket: NotesStore.Ticket) -> NotesStore.Delivery {
        let now = clock()
        return store.withLock { $0.carryOut(ticket, now: now) }
    }
}
