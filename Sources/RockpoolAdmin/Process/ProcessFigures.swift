// The figures of the process that every exporter names alike (docs/reference/metrics.md#process).
import Glibc
import RockpoolCore

/// Reads the figures from the system. What cannot be read is left out.
enum ProcessFigures {
    static func add(to metrics: inout MetricsText, startedAt: Timestamp) {
        var usage = rusage()
        if unsafe getrusage(RUSAGE_SELF.rawValue, &usage) == 0 {
            metrics.add(
                "process_cpu_seconds_total", kind: .counter, help: "Time of the processor in user and system mode.",
                value: usage.ru_utime.seconds + usage.ru_stime.seconds)
        }
        metrics.add(
            "process_start_time_seconds", kind: .gauge, help: "When the server started.",
            value: Double(startedAt.milliseconds) / 1000)
        let pages = words(of: "/proc/self/statm").compactMap { Int64($0) }
        if pages.count > 1 {
            let size = Int64(sysconf(Int32(_SC_PAGESIZE)))
            metrics.add("process_virtual_memory_bytes", kind: .gauge, help: "Size of the address space.", value: pages[0] * size)
            metrics.add("process_resident_memory_bytes", kind: .gauge, help: "Memory in use.", value: pages[1] * size)
        }
        if let open = openDescriptors { metrics.add("process_open_fds", kind: .gauge, help: "Open file descriptors.", value: open) }
        var limit = rlimit()
        if unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 {
            metrics.add("process_max_fds", kind: .gauge, help: "Limit of open file descriptors.", value: UInt64(limit.rlim_cur))
        }
    }

    /// The number of entries of `/proc/self/fd`, without the one that reads it.
    private static var openDescriptors: Int? {
        guard let directory = unsafe opendir("/proc/self/fd") else { return nil }
        defer { unsafe closedir(directory) }
        var count = 0
        while unsafe readdir(directory) != nil { count += 1 }
        return max(0, count - 3)
    }

    private static func words(of path: String) -> [Substring] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = unsafe read(descriptor, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(whereSeparator: \.isWhitespace)
    }
}

extension timeval {
    fileprivate var seconds: Double { Double(tv_sec) + Double(tv_usec) / 1_000_000 }
}
