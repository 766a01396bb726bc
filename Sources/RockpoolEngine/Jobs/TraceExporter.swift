// Sends spans to a collector in batches; no exchange ever waits for it (docs/guide/operating.md#traces).
import HTTPTypes
import Logging
import NIOCore
import RockpoolCore
import ServiceLifecycle
import Synchronization

/// Collects the spans of exchanges and of attempts to deliver queued writes, and posts them.
package final class TraceExporter: Service {
    /// Exchanges and attempts that wait at most; further ones are dropped and counted.
    static let queueLimit = 2048
    /// Exchanges and attempts of one request.
    private static let batchLimit = 256
    private static let period = Duration.seconds(1)

    /// What became of exchanges and attempts with spans since the start.
    package struct Counts: Hashable, Sendable {
        package var sent = 0
        package var dropped = 0
    }

    private enum Ended {
        case exchange(TraceSpan, RecordedExchange.FullExchange, at: Timestamp)
        case attempt(AttemptSpan)

        var spans: OTLPTraces.Ended {
            switch self {
            case .exchange(let span, let exchange, let at): .exchange(span, exchange.record(id: "", at: at))
            case .attempt(let span): .attempt(span)
            }
        }
    }

    private struct State {
        var waiting: [Ended] = []
        var counts = Counts()
        var hasFailed = false
    }

    private let state = Mutex(State())
    private let active: ActiveConfiguration
    private let upstreams: UpstreamClient
    private let logger: Logger
    private let version = Mutex("")

    init(active: ActiveConfiguration, upstreams: UpstreamClient, logger: Logger) {
        (self.active, self.upstreams, self.logger) = (active, upstreams, logger)
    }

    package var counts: Counts { state.withLock(\.counts) }

    /// Names the version of the program in traces.
    package func setVersion(_ text: String) { version.withLock { $0 = text } }

    /// Begins the span of an exchange, and makes the upstream's request part of it. Nil if it is not recorded; then the request keeps the
    /// client's `traceparent`.
    func begin(_ fields: inout HTTPFields) -> TraceSpan? {
        guard let settings = active.configuration.tracing else { return nil }
        let values = fields[values: .traceparent]
        let incoming = values.count == 1 ? values.first.flatMap { TraceContext($0) } : nil
        let span = TraceSpan(continuing: incoming, percent: settings.samplePercent, draw: .random(in: 0..<100)) { .random(in: 1 ... .max) }
        guard let span else { return nil }
        if incoming == nil { fields[.tracestate] = nil }
        fields[.traceparent] = span.outgoing.fieldValue
        return span
    }

    /// Takes an exchange that has ended.
    func end(_ span: TraceSpan, _ exchange: RecordedExchange.FullExchange, at: Timestamp) {
        append(.exchange(span, exchange.kept, at: at))
    }

    /// Begins the span of an attempt to deliver a queued write, and makes the upstream's request part of it. Nil if it is not recorded.
    func begin(_ operation: QueuedWrite, sending request: inout RequestHead, at: Timestamp) -> AttemptSpan? {
        guard active.configuration.tracing != nil else { return nil }
        let span = AttemptSpan(operation, sending: request, startedAt: at, spanID: .random(in: 1 ... .max))
        if let span { request.fields[.traceparent] = span.outgoing.fieldValue }
        return span
    }

    /// Takes an attempt that has ended.
    func end(_ span: AttemptSpan, _ outcome: AttemptOutcome, at: Timestamp) {
        var span = span
        span.endedAt = at
        switch outcome {
        case .answered(let head): span.status = head.status
        case .failed(let failure): span.error = failure.proxyErrorName
        }
        append(.attempt(span))
    }

    private func append(_ ended: Ended) {
        state.withLock { state in
            guard state.waiting.count < Self.queueLimit else { return state.counts.dropped += 1 }
            state.waiting.append(ended)
        }
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await self.send()
                try? await Task.sleep(for: Self.period)
            }
        }
    }

    /// Sends what waits, a batch at a time, until a batch fails.
    private func send() async {
        while let settings = active.configuration.tracing, let endpoint = settings.endpoint, !Task.isCancelled {
            let batch = state.withLock { state in
                let batch = Array(state.waiting.prefix(Self.batchLimit))
                state.waiting.removeFirst(batch.count)
                return batch
            }
            guard !batch.isEmpty else { return }
            let body = OTLPTraces.body(of: batch.map(\.spans), service: settings.service, version: version.withLock { $0 }).serialized()
            let problem = await post(body, to: endpoint)
            let isNews = state.withLock { state in
                if problem == nil { state.counts.sent += batch.count } else { state.counts.dropped += batch.count }
                defer { state.hasFailed = problem != nil }
                return problem != nil && !state.hasFailed
            }
            guard let problem else { continue }
            if isNews { logger.warning("spans are dropped: the collector did not take them", metadata: ["error": "\(problem)"]) }
            return
        }
        // Without a collector nothing is kept.
        if active.configuration.tracing == nil { state.withLock { $0.waiting = [] } }
    }

    /// Returns the reason why the collector did not take a batch; nil if it did.
    private func post(_ body: [UInt8], to endpoint: RequestHead) async -> String? {
        var head = endpoint
        head.fields = [.contentType: "application/json", .userAgent: "Rockpool"]
        do {
            let answer = try await upstreams.send(
                head, body: .bytes(ByteBuffer(bytes: body)), upstream: nil, allowsLoopback: true, forClient: false)
            _ = try? await answer.body.collect(upTo: .kib(64))
            return (200...299).contains(answer.head.status) ? nil : "it answered with \(answer.head.status)"
        } catch {
            return error.detail
        }
    }
}
