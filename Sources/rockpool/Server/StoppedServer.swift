// The admin API without a running server: opens the stores and serves the socket while a command needs them
// (docs/reference/cli.md#calling).
import Glibc
import Logging
import RockpoolAdmin
import RockpoolCore
import RockpoolEngine
import RockpoolStore

enum StoppedServer {
    /// Opens the stores of a stopped server and serves its socket, accessible to the owner only, while `body` runs. Nothing is fetched and
    /// nothing is replayed. A server that starts meanwhile finds the stores locked; if one has already started, this throws
    /// `CommandFailure(.busy, …)`.
    static func with<Value: Sendable>(
        _ loaded: LoadedConfiguration, _ body: @Sendable (AdminClient) async throws -> Value
    ) async throws -> Value {
        let configuration = loaded.configuration
        let storage = configuration.storage
        let logger = Logger(label: "rockpool", level: .error)
        SQLiteTemporaries.keep(in: storage)
        let (data, cache) = try await StartFailure.naming {
            let data = try DataStore.open(
                directory: storage.stateDir, settings: storage, outbox: nil, mayBeginAnew: false, clock: WallClock.now, logger: logger)
            return (
                data,
                try CacheStore.open(
                    directory: storage.cacheDir, settings: storage, categories: configuration.categories, seal: data.seal,
                    clock: WallClock.now, ticks: data.ticks, logger: logger)
            )
        }
        let engine = Engine(
            configuration: configuration, cache: cache, data: data, origin: NoOrigin(), viaName: "stopped", logger: logger,
            now: WallClock.now, unread: loaded.file == nil ? unread : nil)
        let result: Result<Value, any Error>
        do {
            let admin = AdminServer(
                engine: engine, cleaner: Cleaner(engine: engine), puller: Puller(engine: engine), settings: configuration.admin,
                socketPath: storage.stateDir + "/admin.sock",
                token: try data.adminToken(), startedAt: WallClock.now(), logger: logger, onBound: { _ in })
            let value = try await admin.servingSocket { try await body(AdminClient(stateDirectory: storage.stateDir)) }
            result = .success(value)
        } catch {
            result = .failure(error)
        }
        await cache.close()
        await data.close()
        return try result.get()
    }
}

extension StoppedServer {
    /// What is said of upstreams where no configuration was read.
    fileprivate static var unread: String {
        let folder = Directories.workingFile == nil ? "" : "; ./rockpool.yaml is read by serve and config only"
        return "no server runs and no configuration was read; name its file by --config\(folder)"
    }
}

/// An origin that sends nothing.
private struct NoOrigin: Origin {
    func send(_ request: OutboundRequest) async throws(TransferFailure) -> OriginReply {
        throw TransferFailure(kind: .refused, sent: .no, detail: "the server is not running")
    }
}

extension CommonOptions {
    /// Calls the running server; if none runs, opens the stores in this process. A store that is missing is not created: `hasStore` returns
    /// if the one that is needed exists.
    func withStores<Value: Sendable>(
        having hasStore: (StorageSettings) -> Bool = { access($0.cacheDir + "/cache.sqlite", F_OK) == 0 },
        _ body: @Sendable (AdminClient) async throws -> Value
    ) async throws -> Value {
        let loaded = try load()
        do {
            return try await body(try client())
        } catch let failure as AdminFailure where failure.isNotRunning && hasStore(loaded.configuration.storage) {
            return try await StoppedServer.with(loaded, body)
        }
    }
}
