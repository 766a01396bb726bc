// The metrics of upstreams: bytes on the wire, and what became of queued writes (docs/reference/metrics.md#upstreams).
import RockpoolCore
import RockpoolEngine

/// The figures of each upstream since the start.
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
