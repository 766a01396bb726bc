// Process setup before serving: private files, enough descriptors, ignored signals (docs/security-model.md#files).
import Dispatch
import Foundation
import Glibc
import NIOCore
import RockpoolCore

enum ProcessSetUp {
    /// Makes new files private to their owner, and turns a broken pipe or a file-size limit into an error instead of a signal.
    static func prepare() {
        umask(0o077)
        // A closed stderr would be the number of the next file that is opened: the log would be written into it.
        for descriptor in 0...2 where fcntl(Int32(descriptor), F_GETFD) < 0 { _ = open("/dev/null", O_RDWR) }
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            limit.rlim_cur = limit.rlim_max
            _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        NIOSingletons.groupLoopCountSuggestion = min(loopCount, descriptors.eventLoops)
    }

    /// The descriptors this process may open, by the current system limit.
    static var descriptors: DescriptorBudget {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .unlimited }
        return DescriptorBudget(limit: Int(clamping: limit.rlim_cur))
    }

    /// One event loop per processor available to this process: two loops on one processor take turns, and the clients of both wait.
    private static var loopCount: Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        // A mask in hexadecimal digits.
        let allowed = status.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed:") }?.dropFirst("Cpus_allowed:".count)
        let processors = (allowed ?? "").reduce(0) { $0 + ($1.hexDigitValue ?? 0).nonzeroBitCount }
        return processors == 0 ? System.coreCount : min(processors, System.coreCount)
    }

    /// Calls `action` for each SIGHUP, until the returned source is released.
    static func onHangUp(_ action: @escaping @Sendable () -> Void) -> any DispatchSourceSignal {
        signal(SIGHUP, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: SIGHUP, queue: .global())
        source.setEventHandler(handler: action)
        source.resume()
        return source
    }
}

/// Waits for an interrupt from the terminal.
enum Interruption {
    /// Returns at SIGINT or SIGTERM.
    static func wait() async {
        for number in [SIGINT, SIGTERM] { signal(number, SIG_IGN) }
        let sources = [SIGINT, SIGTERM].map { DispatchSource.makeSignalSource(signal: $0, queue: .global()) }
        let (interruptions, feed) = AsyncStream.makeStream(of: Void.self)
        for source in sources {
            source.setEventHandler { feed.yield() }
            source.resume()
        }
        var iterator = interruptions.makeAsyncIterator()
        await iterator.next()
        sources.forEach { $0.cancel() }
    }
}

/// The directory of SQLite's temporary copy during VACUUM: on the volume of the database, where the free space was checked
/// (docs/storage.md#compaction).
enum SQLiteTemporaries {
    /// Sets `SQLITE_TMPDIR`. Must run before the first database is opened and before other threads may read the environment. A directory
    /// that the user has set is kept.
    static func keep(in storage: StorageSettings) {
        guard ProcessInfo.processInfo.environment["SQLITE_TMPDIR"] == nil else { return }
        setenv("SQLITE_TMPDIR", isLackingAny(storage) ? storage.stateDir + "/blobs/tmp" : storage.cacheDir + "/tmp", 1)
    }

    /// True before the first start in a container with a read-only root: the outbox is migrated before the cache makes its directory, and
    /// SQLite finds no other. The directory of the outbox's own temporary files is made before its database is opened.
    private static func isLackingAny(_ storage: StorageSettings) -> Bool {
        ![storage.cacheDir + "/tmp", "/var/tmp", "/usr/tmp", "/tmp"].contains(where: isWritable)
    }

    private static func isWritable(_ path: String) -> Bool { access(path, W_OK | X_OK) == 0 }
}

/// The system's wall clock.
enum WallClock {
    @Sendable static func now() -> Timestamp {
        Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
}
