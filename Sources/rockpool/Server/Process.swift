// What the process asks of the system before it serves: private files, enough descriptors, no deadly signals (security.md §4 *files*).
import Dispatch
import Foundation
import Glibc
import NIOCore
import RockpoolCore

enum ProcessSetUp {
    /// Files are the owner's alone; a broken pipe or a file-size limit is an error to handle, not a death.
    static func prepare() {
        umask(0o077)
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            limit.rlim_cur = limit.rlim_max
            _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        NIOSingletons.groupLoopCountSuggestion = min(loopCount, descriptors.eventLoops)
    }

    /// What this process may have open, as the system says now.
    static var descriptors: DescriptorBudget {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .unlimited }
        return DescriptorBudget(limit: Int(clamping: limit.rlim_cur))
    }

    /// One event loop for each processor this process may run on: two that share one only take turns, and clients wait for both.
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

/// Waiting for the person at the terminal.
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
