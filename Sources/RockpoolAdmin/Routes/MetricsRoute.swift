// `/metrics`: the counters as Prometheus scrapes them, in base units, every label from a closed or configured set (contract §4, §5).
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
            "rockpool_requests_total", .counter, "Requests answered, by how.", by: "verdict", verdicts.map { ($0.rawValue, statistics[$0]) }
        )
        metrics.add("rockpool_hot_hits_total", .counter, "Hits answered without the full way; among the hits.", statistics.hotHits)
        let latencies = statistics.latencies
        metrics.add(
            "rockpool_request_duration_seconds", "From a request's head to its reply's head, by how it was answered; without hot hits.",
            by: "verdict", verdicts.map { ($0.rawValue, latencies[$0] ?? LatencyHistogram()) })
    }

    private func addCache(_ usage: CacheUsage, to metrics: inout MetricsText) {
        let categories = engine.configuration.categories.map { ($0.name, usage.byCategory[$0.name]) }
        metrics.add(
            "rockpool_cache_entries", .gauge, "Stored responses, by category.", by: "category", categories.map { ($0, $1?.entries ?? 0) })
        metrics.add(
            "rockpool_cache_entry_bytes", .gauge, "Bytes of stored responses, by category.", by: "category",
            categories.map { ($0, $1?.bytes ?? 0) })
        metrics.add("rockpool_cache_bytes", .gauge, "Everything in cache_dir, as du counts it.", usage.usedBytes)
        metrics.add("rockpool_cache_limit_bytes", .gauge, "What it may take at most now.", usage.limitBytes)
        metrics.add("rockpool_cache_memory_bytes", .gauge, "Responses kept ready in memory.", usage.memoryBytes)
        metrics.add("rockpool_cache_pinned_bytes", .gauge, "Responses that are never evicted.", usage.pinnedBytes)
        metrics.add("rockpool_cache_evictions_total", .counter, "Entries evicted for room.", usage.evictions)
        metrics.add("rockpool_cache_damaged_bodies_total", .counter, "Bodies whose checksum did not hold.", usage.badBodies)
        metrics.add("rockpool_cache_drift_bytes", .gauge, "By what the last audit corrected the account.", usage.driftBytes)
        metrics.add("rockpool_disk_free_bytes", .gauge, "Free on the cache's file system.", usage.freeDiskBytes)
    }

    private func addOutbox(to metrics: inout MetricsText) async throws {
        let counts = try await engine.data.counts()
        metrics.add(
            "rockpool_outbox_operations", .gauge, "Kept operations, by state.", by: "state",
            OperationState.allCases.map { ($0.rawValue, counts[$0, default: 0]) })
        metrics.add("rockpool_outbox_delivered_total", .counter, "Operations delivered, ever.", try await engine.data.deliveredTotal())
        let oldest = try await engine.data.oldestPending()
        metrics.add(
            "rockpool_outbox_oldest_pending_seconds", .gauge, "Age of the oldest operation that waits; 0 without one.",
            oldest.map { max(0, (engine.now() - $0).seconds) } ?? 0)
        let data = engine.data.usage()
        metrics.add("rockpool_data_bytes", .gauge, "Everything in state_dir, as du counts it.", data.usedBytes)
        metrics.add("rockpool_data_limit_bytes", .gauge, "What it may take at most.", data.limitBytes)
    }

    private func addUpstreams(to metrics: inout MetricsText) {
        let machines = engine.routes.upstreams.map { ($0.name, engine.reachability.machine(of: $0.name)) }
        metrics.add(
            "rockpool_upstream_reachable", .gauge, "1 while requests go to it, 0 while it is away or switched off.", by: "upstream",
            machines.map { ($0, $1?.isReachable == false ? 0 : 1) })
    }
}
