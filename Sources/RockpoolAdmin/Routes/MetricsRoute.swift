// `/metrics`: the counters for Prometheus, in base units; every label is from a closed or configured set (docs/reference/metrics.md).
import Glibc
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct MetricsRoute {
    let cache: CacheStore
    let data: DataStore
    let active: ActiveConfiguration
    let reachability: ReachabilityTable
    let statistics: Statistics
    let measures: OutboxMeasures
    let traces: TraceExporter
    let parents: SiteParents
    let startedAt: Timestamp
    let facts: ServerFacts
    let feed: EventFeed
    let now: @Sendable () -> Timestamp

    func add(to router: Router<AdminContext>) {
        router.get("/metrics") { _, _ in
            Response(
                status: .ok, headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8", .cacheControl: "no-store"],
                body: .init(byteBuffer: ByteBuffer(string: try await text())))
        }
    }

    private func text() async throws -> String {
        var metrics = MetricsText()
        metrics.add(
            "rockpool_uptime_seconds", kind: .gauge, help: "Time since the server started.", value: (now() - startedAt).seconds)
        addServer(to: &metrics)
        ProcessFigures.add(to: &metrics, startedAt: startedAt)
        addRequests(to: &metrics)
        addCache(try await cache.usage(), to: &metrics)
        try await addOutbox(to: &metrics)
        let troubles = [("cache", cache.trouble), ("data", data.trouble)]
        metrics.add(
            "rockpool_storage_trouble", kind: .gauge, help: "1 while the disk refuses a store's writes.", by: "store",
            values: troubles.map { ($0, $1 == nil ? 0 : 1) })
        addUpstreams(to: &metrics)
        FleetMetrics(fleet: data.fleet, claimed: try await data.claimedCount(), parents: parents).add(to: &metrics)
        addTraces(to: &metrics)
        metrics.add("rockpool_event_streams", kind: .gauge, help: "Open streams of /v1/events.", value: feed.listenerCount)
        return metrics.text
    }

    private func addRequests(to metrics: inout MetricsText) {
        let verdicts = Trace.Verdict.allCases
        metrics.add(
            "rockpool_requests_total", kind: .counter, help: "Requests, by verdict.", by: "verdict",
            values: verdicts.map { ($0.rawValue, statistics[$0]) }
        )
        metrics.add(
            "rockpool_hot_hits_total", kind: .counter, help: "Hits answered by the fast path; also counted as hits.",
            value: statistics.hotHits)
        let (answered, missed) = statistics.offlineReads
        metrics.add(
            "rockpool_offline_reads_total", kind: .counter, help: "Reads whose upstream was away, by whether a copy answered them.",
            by: "outcome", values: [("answered", answered), ("missed", missed)])
        metrics.add(
            "rockpool_requests_relayed_total", kind: .counter,
            help: "Responses passed on without the read pipeline; also counted by their verdict.", value: statistics.relays)
        let latencies = statistics.latencies
        metrics.add(
            "rockpool_request_duration_seconds", help: "Time from a request's head to its response's head, by verdict.",
            by: "verdict", histograms: verdicts.map { ($0.rawValue, BucketCounts(latencies[$0] ?? LatencyHistogram())) })
        metrics.add(
            "rockpool_response_bytes_total", kind: .counter, help: "Bytes of response bodies that clients received, by verdict.",
            by: "verdict", values: verdicts.map { ($0.rawValue, statistics.bytes(of: $0)) })
    }

    private func addCache(_ usage: CacheUsage, to metrics: inout MetricsText) {
        let categories = active.configuration.categories.map { ($0.name, usage.byCategory[$0.name]) }
        metrics.add(
            "rockpool_cache_entries", kind: .gauge, help: "Stored responses, by category.", by: "category",
            values: categories.map { ($0, $1?.entries ?? 0) })
        metrics.add(
            "rockpool_cache_entry_bytes", kind: .gauge, help: "Bytes of stored responses, by category.", by: "category",
            values: categories.map { ($0, $1?.bytes ?? 0) })
        metrics.add("rockpool_cache_bytes", kind: .gauge, help: "Size of cache_dir, as du counts it.", value: usage.usedBytes)
        metrics.add("rockpool_cache_limit_bytes", kind: .gauge, help: "Current limit of cache_dir.", value: usage.limitBytes)
        metrics.add("rockpool_cache_memory_bytes", kind: .gauge, help: "Size of the responses in memory.", value: usage.memoryBytes)
        metrics.add(
            "rockpool_cache_pinned_bytes", kind: .gauge, help: "Size of pinned responses, which are never evicted.",
            value: usage.pinnedBytes)
        metrics.add("rockpool_cache_evictions_total", kind: .counter, help: "Entries evicted to free space.", value: usage.evictions)
        metrics.add("rockpool_cache_damaged_bodies_total", kind: .counter, help: "Bodies with a wrong checksum.", value: usage.badBodies)
        metrics.add(
            "rockpool_cache_drift_bytes", kind: .gauge, help: "Error of the size accounting that the last audit measured.",
            value: usage.driftBytes)
        metrics.add("rockpool_disk_free_bytes", kind: .gauge, help: "Free space of the cache's file system.", value: usage.freeDiskBytes)
    }

    private func addOutbox(to metrics: inout MetricsText) async throws {
        let counts = try await data.counts()
        metrics.add(
            "rockpool_outbox_operations", kind: .gauge, help: "Stored operations, by state.", by: "state",
            values: OperationState.allCases.map { ($0.rawValue, counts[$0, default: 0]) })
        metrics.add(
            "rockpool_outbox_delivered_total", kind: .counter, help: "Operations delivered in total.",
            value: try await data.deliveredTotal())
        let oldest = try await data.oldestPending()
        metrics.add(
            "rockpool_outbox_oldest_pending_seconds", kind: .gauge, help: "Age of the oldest pending operation; 0 without one.",
            value: oldest.map { max(0, (now() - $0).seconds) } ?? 0)
        let open = OperationState.allCases.filter { !$0.hasEnded }
        let byUpstream = try await data.openCounts(ofEach: active.routes.upstreams.map(\.name))
        metrics.add(
            "rockpool_outbox_upstream_operations", kind: .gauge, help: "Open operations, by upstream and state.",
            samples: byUpstream.flatMap { upstream, counts -> [(MetricsText.Labels, Int)] in
                open.map { (["upstream": upstream, "state": $0.rawValue], counts[$0, default: 0]) }
            })
        let queues = try await data.telemetryQueues(of: active.routes)
        metrics.add(
            "rockpool_telemetry_waiting", kind: .gauge, help: "Writes that wait on a telemetry route, by upstream and route.",
            samples: queues.map { (["upstream": $0.upstream, "route": $0.route], $0.waiting) })
        metrics.add(
            "rockpool_telemetry_bytes", kind: .gauge, help: "Bytes that count against the limit of a telemetry route.",
            samples: queues.map { (["upstream": $0.upstream, "route": $0.route], $0.bytes) })
        metrics.add(
            "rockpool_telemetry_dropped_total", kind: .counter, help: "Writes dropped at a limit of their telemetry route: age or bytes.",
            samples: queues.flatMap { queue in
                TelemetryQueue.Limit.allCases.map { limit -> (MetricsText.Labels, Int) in
                    (["upstream": queue.upstream, "route": queue.route, "limit": limit.rawValue], queue.dropped[limit, default: 0])
                }
            })
        let data = self.data.usage()
        metrics.add("rockpool_data_bytes", kind: .gauge, help: "Size of state_dir, as du counts it.", value: data.usedBytes)
        metrics.add("rockpool_data_limit_bytes", kind: .gauge, help: "Limit of state_dir.", value: data.limitBytes)
    }

    private func addServer(to metrics: inout MetricsText) {
        metrics.add(
            "rockpool_build_info", kind: .gauge, help: "1; its label names the version.", by: "version", values: [(facts.version, 1)])
        let open = facts.connections()
        metrics.add("rockpool_client_connections", kind: .gauge, help: "Open connections of clients.", value: open.clients)
        metrics.add("rockpool_tunnels", kind: .gauge, help: "Open tunnels and upgraded connections.", value: open.tunnels)
        if let expiry = facts.authorityExpiry() {
            metrics.add(
                "rockpool_ca_expiry_timestamp_seconds", kind: .gauge, help: "When the certificate authority expires.",
                value: expiry.milliseconds / 1000)
        }
        guard let reload = facts.lastReload() else { return }
        metrics.add(
            "rockpool_config_last_reload_successful", kind: .gauge, help: "1 if the last reading of the configuration was good.",
            value: reload.isGood ? 1 : 0)
        metrics.add(
            "rockpool_config_last_reload_success_timestamp_seconds", kind: .gauge, help: "When the configuration in force was read.",
            value: reload.at.milliseconds / 1000)
    }

    private func addTraces(to metrics: inout MetricsText) {
        let counts = traces.counts
        metrics.add(
            "rockpool_traced_exchanges_total", kind: .counter, help: "Exchanges whose spans were sent, or dropped.", by: "outcome",
            values: [("sent", counts.sent), ("dropped", counts.dropped)])
    }

    private func addUpstreams(to metrics: inout MetricsText) {
        let machines = active.routes.upstreams.map { ($0.name, reachability.machine(of: $0.name)) }
        metrics.add(
            "rockpool_upstream_reachable", kind: .gauge, help: "1 while the upstream is used, 0 while unreachable or switched off.",
            by: "upstream",
            values: machines.map { ($0, $1?.isReachable == false ? 0 : 1) })
        UpstreamMetrics(names: machines.map(\.0), statistics: statistics, measures: measures).add(to: &metrics)
    }
}

/// The figures of each upstream since the start (docs/reference/metrics.md#upstreams).
struct UpstreamMetrics {
    /// The names of upstreams, a configured set.
    let names: [String]
    let statistics: Statistics
    let measures: OutboxMeasures

    func add(to metrics: inout MetricsText) {
        let traffic = names.map { ($0, statistics.traffic[$0]) }
        metrics.add(
            "rockpool_upstream_requests_total", kind: .counter, help: "Requests sent to the upstream.", by: "upstream",
            values: traffic.map { ($0, $1.requests) })
        metrics.add(
            "rockpool_upstream_sent_bytes_total", kind: .counter, help: "Bytes of requests sent to the upstream.", by: "upstream",
            values: traffic.map { ($0, $1.sentBytes) })
        metrics.add(
            "rockpool_upstream_received_bytes_total", kind: .counter, help: "Bytes of the upstream's responses.", by: "upstream",
            values: traffic.map { ($0, $1.receivedBytes) })
        metrics.add(
            "rockpool_upstream_saved_bytes_total", kind: .counter, help: "Bytes of bodies that came from the cache instead.",
            by: "upstream", values: traffic.map { ($0, $1.savedBytes) })
        metrics.add(
            "rockpool_outbox_running", kind: .gauge, help: "Operations that count against the limit of concurrent ones.", by: "upstream",
            values: names.map { ($0, measures.running(at: $0)) })
        let figures = names.map { ($0, measures[$0]) }
        metrics.add(
            "rockpool_outbox_entered_total", kind: .counter, help: "How often an operation entered a state, by upstream.",
            samples: figures.flatMap { name, figures -> [(MetricsText.Labels, Int)] in
                OperationState.allCases.map { (["upstream": name, "state": $0.rawValue], figures.entered[$0, default: 0]) }
            })
        metrics.add(
            "rockpool_outbox_attempts", help: "Attempts of delivered operations.", by: "upstream",
            histograms: figures.map { ($0, $1.attempts) })
        metrics.add(
            "rockpool_outbox_wait_seconds", help: "Time from the acceptance of a delivered operation to its first sending.",
            by: "upstream", histograms: figures.map { ($0, $1.wait) })
        metrics.add(
            "rockpool_outbox_delivery_seconds", help: "Time from the acceptance of a delivered operation to its delivery.",
            by: "upstream", histograms: figures.map { ($0, $1.total) })
        metrics.add(
            "rockpool_outbox_sync_seconds", help: "Time from the first sending of a delivered operation to its delivery.",
            by: "upstream", histograms: figures.map { ($0, $1.sending) })
    }
}

/// How this node stands among others (docs/reference/metrics.md#fleet).
struct FleetMetrics {
    /// Nil without a fleet.
    let fleet: FleetStanding?
    /// The number of operations that this node has claimed.
    let claimed: Int
    let parents: SiteParents

    func add(to metrics: inout MetricsText) {
        if let fleet { add(fleet, to: &metrics) }
        let states = parents.states
        guard !states.isEmpty else { return }
        metrics.add(
            "rockpool_fleet_parent_up", kind: .gauge, help: "1 while reads go to this gateway of the site.", by: "parent",
            values: states.map { ($0.node, $0.isUp ? 1 : 0) })
        metrics.add(
            "rockpool_fleet_parent_answers_total", kind: .counter, help: "Responses of other gateways in place of origins.",
            value: parents.taken)
    }

    private func add(_ fleet: FleetStanding, to metrics: inout MetricsText) {
        metrics.add(
            "rockpool_fleet_database_up", kind: .gauge, help: "1 while this node uses the shared database.",
            value: fleet.absence == nil ? 1 : 0)
        if let age = fleet.leaseAge {
            metrics.add(
                "rockpool_fleet_lease_age_seconds", kind: .gauge, help: "Time since the last renewal of this node's lease.",
                value: age / .seconds(1))
        }
        metrics.add(
            "rockpool_fleet_feed_age_seconds", kind: .gauge, help: "Time since this node knew every change of the others.",
            value: fleet.feedAge / .seconds(1))
        metrics.add("rockpool_fleet_claimed", kind: .gauge, help: "Operations that this node has in flight.", value: claimed)
        metrics.add("rockpool_fleet_held", kind: .gauge, help: "Writes that this node keeps until the database is back.", value: fleet.held)
        metrics.add(
            "rockpool_fleet_behind", kind: .gauge, help: "Changes of others that this node did not have when it looked last.",
            value: Int(fleet.behind))
        metrics.add(
            "rockpool_fleet_transactions_total", kind: .counter, help: "How often this node had the lock of the fleet.",
            value: fleet.transactions)
        metrics.add(
            "rockpool_fleet_lock_wait_seconds_total", kind: .counter, help: "Time until this node had the lock of the fleet.",
            value: fleet.lockWait / .seconds(1))
        metrics.add("rockpool_fleet_nodes", kind: .gauge, help: "Nodes that hold their lease.", value: fleet.nodes)
        metrics.add(
            "rockpool_fleet_differing_nodes", kind: .gauge, help: "Nodes that hold their lease and have other settings than this one.",
            value: fleet.differences.count)
        metrics.add("rockpool_fleet_fenced_total", kind: .counter, help: "How often others took over from this node.", value: fleet.fenced)
    }
}

/// Reads the figures from the system (docs/reference/metrics.md#process). What cannot be read is left out.
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
