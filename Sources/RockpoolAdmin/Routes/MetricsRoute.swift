// `/metrics`: the counters for Prometheus, in base units; every label is from a closed or configured set (docs/reference/metrics.md).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct MetricsRoute {
    let engine: Engine
    let startedAt: Timestamp
    let feed: EventFeed

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
            "rockpool_uptime_seconds", .gauge, "Time since the server started.", (engine.now() - startedAt).seconds)
        addRequests(to: &metrics)
        addCache(try await engine.cache.usage(), to: &metrics)
        try await addOutbox(to: &metrics)
        let troubles = [("cache", engine.cache.trouble), ("data", engine.data.trouble)]
        metrics.add(
            "rockpool_storage_trouble", .gauge, "1 while the disk refuses a store's writes.", by: "store",
            troubles.map { ($0, $1 == nil ? 0 : 1) })
        addUpstreams(to: &metrics)
        metrics.add("rockpool_event_streams", .gauge, "Open streams of /v1/events.", feed.listenerCount)
        return metrics.text
    }

    private func addRequests(to metrics: inout MetricsText) {
        let statistics = engine.statistics
        let verdicts = Trace.Verdict.allCases
        metrics.add(
            "rockpool_requests_total", .counter, "Requests, by verdict.", by: "verdict", verdicts.map { ($0.rawValue, statistics[$0]) }
        )
        metrics.add("rockpool_hot_hits_total", .counter, "Hits answered by the fast path; also counted as hits.", statistics.hotHits)
        let latencies = statistics.latencies
        metrics.add(
            "rockpool_request_duration_seconds", "Time from a request's head to its response's head, by verdict; without hot hits.",
            by: "verdict", verdicts.map { ($0.rawValue, latencies[$0] ?? LatencyHistogram()) })
    }

    private func addCache(_ usage: CacheUsage, to metrics: inout MetricsText) {
        let categories = engine.configuration.categories.map { ($0.name, usage.byCategory[$0.name]) }
        metrics.add(
            "rockpool_cache_entries", .gauge, "Stored responses, by category.", by: "category", categories.map { ($0, $1?.entries ?? 0) })
        metrics.add(
            "rockpool_cache_entry_bytes", .gauge, "Bytes of stored responses, by category.", by: "category",
            categories.map { ($0, $1?.bytes ?? 0) })
        metrics.add("rockpool_cache_bytes", .gauge, "Size of cache_dir, as du counts it.", usage.usedBytes)
        metrics.add("rockpool_cache_limit_bytes", .gauge, "Current limit of cache_dir.", usage.limitBytes)
        metrics.add("rockpool_cache_memory_bytes", .gauge, "Size of the responses in memory.", usage.memoryBytes)
        metrics.add("rockpool_cache_pinned_bytes", .gauge, "Size of pinned responses, which are never evicted.", usage.pinnedBytes)
        metrics.add("rockpool_cache_evictions_total", .counter, "Entries evicted to free space.", usage.evictions)
        metrics.add("rockpool_cache_damaged_bodies_total", .counter, "Bodies with a wrong checksum.", usage.badBodies)
        metrics.add("rockpool_cache_drift_bytes", .gauge, "Error of the size accounting that the last audit measured.", usage.driftBytes)
        metrics.add("rockpool_disk_free_bytes", .gauge, "Free space of the cache's file system.", usage.freeDiskBytes)
    }

    private func addOutbox(to metrics: inout MetricsText) async throws {
        let counts = try await engine.data.counts()
        metrics.add(
            "rockpool_outbox_operations", .gauge, "Stored operations, by state.", by: "state",
            OperationState.allCases.map { ($0.rawValue, counts[$0, default: 0]) })
        metrics.add("rockpool_outbox_delivered_total", .counter, "Operations delivered in total.", try await engine.data.deliveredTotal())
        let oldest = try await engine.data.oldestPending()
        metrics.add(
            "rockpool_outbox_oldest_pending_seconds", .gauge, "Age of the oldest pending operation; 0 without one.",
            oldest.map { max(0, (engine.now() - $0).seconds) } ?? 0)
        let data = engine.data.usage()
        metrics.add("rockpool_data_bytes", .gauge, "Size of state_dir, as du counts it.", data.usedBytes)
        metrics.add("rockpool_data_limit_bytes", .gauge, "Limit of state_dir.", data.limitBytes)
    }

    private func addUpstreams(to metrics: inout MetricsText) {
        let machines = engine.routes.upstreams.map { ($0.name, engine.reachability.machine(of: $0.name)) }
        metrics.add(
            "rockpool_upstream_reachable", .gauge, "1 while the upstream is used, 0 while unreachable or switched off.", by: "upstream",
            machines.map { ($0, $1?.isReachable == false ? 0 : 1) })
    }
}
