// Answers writes: sends them while the upstream answers, queues them when it does not (docs/outbox.md#overview).
import Logging
import RockpoolCore
import RockpoolStore
import Synchronization

/// The write pipeline.
package final class WritePipeline: Sendable {
    let data: DataStore
    let cache: CacheStore
    let credentials: Credentials
    let events: EngineEvents
    let reads: ReadPipeline
    let ownWrites: ReadYourWrites
    let effects: OwnWriteEffects
    let identities: KnownIdentities
    let itemsBefore: ItemsBefore
    let upstreams: UpstreamClient
    let renewal: CredentialRenewal
    let notifier: OutboxNotifier
    let documents: OperationDocuments
    let logger: Logger
    let now: @Sendable () -> Timestamp
    /// Client keys whose first request is in progress.
    let keysUnderWay = KeysUnderWay()
    /// One live write at a time for each entity of a client: two that overlapped would both be conditional on the version from before the
    /// first, so that the second would conflict with its own client's change (docs/outbox.md#live-writes).
    let entityTurns = KeyTurns<ClientLane>()
    /// The acknowledgements of equal writes.
    let acknowledgements = Acknowledgements()
    let telemetryNumbers = TelemetryNumbers()
    let traces: LiveTraces
    let liveEffects: LiveEffects

    init(
        data: DataStore, cache: CacheStore, credentials: Credentials, events: EngineEvents,
        reads: ReadPipeline, ownWrites: ReadYourWrites, effects: OwnWriteEffects, identities: KnownIdentities,
        itemsBefore: ItemsBefore, upstreams: UpstreamClient, renewal: CredentialRenewal, notifier: OutboxNotifier,
        documents: OperationDocuments, logger: Logger, now: @escaping @Sendable () -> Timestamp
    ) {
        self.data = data
        self.cache = cache
        self.credentials = credentials
        self.events = events
        self.reads = reads
        self.ownWrites = ownWrites
        self.effects = effects
        self.identities = identities
        self.itemsBefore = itemsBefore
        self.upstreams = upstreams
        self.renewal = renewal
        self.notifier = notifier
        self.documents = documents
        self.logger = logger
        self.now = now
        traces = LiveTraces(data: data, logger: logger)
        liveEffects = LiveEffects(
            updates: reads.updates, effects: effects, overlay: notifier.overlay, localIDs: data.localIDs,
            moment: reads.updates.cache.moment)
    }
}

/// Numbers that rise with every telemetry write, also over a restart: microseconds, or one more than the last.
final class TelemetryNumbers: Sendable {
    private let last = Mutex<Int64>(0)

    func next(at moment: Timestamp) -> Int64 {
        last.withLock { last in
            last = max(last.addedClamped(1), moment.milliseconds.multipliedClamped(by: 1000))
            return last
        }
    }
}

/// The acknowledgements of equal writes of each client (docs/outbox.md#floods).
final class Acknowledgements: Sendable {
    private let limit = Mutex(AcknowledgementLimit())

    /// The refusal of a write that its client repeats too fast; nil counts the acknowledgement that it is about to get.
    func problem(of operation: QueuedWriteDraft, from exchange: Exchange, now: Timestamp) -> Problem? {
        let client = operation.principal ?? exchange.clientAddress
        guard let wait = limit.withLock({ $0.admit(operation.fingerprint, of: client, now: now) }) else { return nil }
        let (count, seconds) = (AcknowledgementLimit.count, AcknowledgementLimit.window.milliseconds / 1000)
        return Problem(
            .tooManyRepeats,
            detail: "\(count) equal writes of this client were acknowledged within \(seconds) seconds; this one was not queued",
            upstream: operation.upstream, retryAfter: Int(clamping: max(1, (wait.milliseconds + 999) / 1000)))
    }
}
