// The source of `/v1/events`: the engine's events numbered in a ring, and the counters every two seconds while a stream is open.
import Dispatch
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import ServiceLifecycle
import Synchronization

/// Feeds event streams. A listener costs only its position in the ring: one that is too slow loses its stream instead of using memory.
final class EventFeed: Sendable {
    /// The most streams at once; the descriptor budget may lower it.
    static let streamLimit = 32
    /// Events by which a listener may lag, or that it may miss while disconnected.
    static let capacity = 1024
    /// How often the counters are read.
    static let pace = Duration.seconds(2)
    /// How long one write to a listener may take.
    static let patience = Duration.seconds(20)

    private struct Listener {
        var wake: AsyncStream<Void>.Continuation
        var hangUp: @Sendable () -> Void
        var writingSince: ContinuousClock.Instant?
    }

    private struct State {
        var ring: EventRing
        var listeners: [Int: Listener] = [:]
        var nextListener = 0
        var stats: JSONValue?
        var statsVersion = 0
        var history: TrafficHistory
        var isClosed = false

        mutating func setStats(_ document: JSONValue) {
            stats = document
            statsVersion += 1
        }
    }

    /// The most streams at once.
    let places: Int
    private let stats: StatsDocument
    private let state: Mutex<State>

    init(stats: StatsDocument, events: EngineEvents, streamLimit: Int = EventFeed.streamLimit) {
        self.stats = stats
        places = streamLimit
        state = Mutex(
            State(
                ring: EventRing(epoch: String(stats.startedAt.milliseconds, radix: 36), capacity: Self.capacity),
                history: TrafficHistory(.init(stats.statistics, at: stats.startedAt))))
        events.listen { [weak self] in self?.take($0) }
    }

    /// Reads the counters until the server stops, then ends every stream.
    func run() async {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await self.tick()
                try? await Task.sleep(for: Self.pace)
            }
        }
        close()
    }

    /// One step: adds to the history when due, sends the counters to the listeners, and disconnects listeners that do not read.
    func tick() async {
        let reading = TrafficHistory.Reading(stats.statistics, at: stats.now())
        state.withLock { _ = $0.history.take(reading) }
        guard state.withLock({ !$0.listeners.isEmpty }) else { return }
        if let document = try? await statsDocument() { state.withLock { $0.setStats(document) } }
        wake()
        let now = ContinuousClock.now
        let stalled = state.withLock { $0.listeners.values.filter { now - ($0.writingSince ?? now) > Self.patience } }
        for listener in stalled { listener.hangUp() }
    }

    /// The document of `/v1/stats`.
    func statsDocument() async throws -> JSONValue {
        var document = try await stats.json()
        let reading = TrafficHistory.Reading(stats.statistics, at: stats.now())
        let (latency, windows, sample) = state.withLock {
            ($0.history.latency(until: reading), $0.history.windows(until: reading), $0.history.samples.last)
        }
        document["latency"] = latency
        document["windows"] = windows
        document["sample"] = sample ?? .null
        return document
    }

    /// The samples of `/v1/stats/history`.
    var history: [JSONValue] { state.withLock { $0.history.samples } }

    /// The number of open streams.
    var listenerCount: Int { state.withLock { $0.listeners.count } }

    private func take(_ event: EngineEvents.Event) {
        guard let (name, data) = event.told else { return }
        state.withLock { $0.ring.append(name, data: data) }
        wake()
    }

    private func wake() {
        let listeners = state.withLock { $0.listeners.values.map(\.wake) }
        for listener in listeners { listener.yield() }
    }

    private func close() {
        let listeners = state.withLock { state in
            state.isClosed = true
            return state.listeners.values.map(\.wake)
        }
        for listener in listeners { listener.finish() }
    }
}

extension EventFeed {
    /// The position of one listener.
    struct Place {
        fileprivate let id: Int
        fileprivate var number: UInt64
        fileprivate var isGap: Bool
        fileprivate var statsVersion: Int
        /// Yields when there may be events to send; finishes when the server stops.
        let wakes: AsyncStream<Void>
    }

    /// Adds a listener that has received everything up to `lastEventID`. Nil if all places are taken or the server stops.
    /// - Parameter hangUp: closes the connection; called when a write takes too long.
    func join(after lastEventID: String?, hangUp: @escaping @Sendable () -> Void) -> Place? {
        let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        wake.yield()
        return state.withLock { state in
            guard state.listeners.count < places, !state.isClosed else { return nil }
            // Counters are only read while a listener is connected: the last ones sent may be old, so the first listener gets none of them.
            let seen = state.listeners.isEmpty ? state.statsVersion : 0
            state.nextListener += 1
            state.listeners[state.nextListener] = Listener(wake: wake, hangUp: hangUp)
            let position = state.ring.position(after: lastEventID)
            return Place(id: state.nextListener, number: position.number, isGap: position.isGap, statsVersion: seen, wakes: wakes)
        }
    }

    func leave(_ place: Place) { state.withLock { $0.listeners[place.id] = nil } }

    /// The frames not yet sent to `place`; nil if it has fallen too far behind.
    func frames(for place: inout Place) -> String? {
        state.withLock { state in
            guard let frames = state.ring.frames(after: place.number) else { return nil }
            var text =
                place.isGap
                ? EventRing.frame(id: state.ring.id(of: place.number), name: "gap", data: ["detail": "earlier events are lost"]) : ""
            text += frames.joined()
            if place.statsVersion < state.statsVersion, let stats = state.stats {
                // The id is the one of the newest event: the id at the time of the count would take the listener back on reconnecting.
                text += EventRing.frame(id: state.ring.id(of: state.ring.last), name: "stats", data: stats)
            }
            (place.number, place.isGap, place.statsVersion) = (state.ring.last, false, state.statsVersion)
            return text
        }
    }

    /// Records the start or end of one write, so that a write that never ends is detected.
    func writing(_ place: Place, isWriting: Bool) {
        let since = isWriting ? ContinuousClock.now : nil
        state.withLock { $0.listeners[place.id]?.writingSince = since }
    }
}

extension EngineEvents.Event {
    /// The event's name and data on the stream; nil for an internal event.
    fileprivate var told: (name: String, data: JSONValue)? {
        switch self {
        case .operation(let id, let state, _): ("operation", ["id": .string(id), "state": .string(state.rawValue)])
        case .reachability(let change):
            (
                "reachability",
                ["upstream": .string(change.upstream), "from": .string(change.from.rawValue), "to": .string(change.to.rawValue)]
            )
        case .storage(let detail): ("storage", ["detail": .string(detail)])
        case .conflictAhead(let operation): ("conflict", ["id": .null, "operation": .string(operation), "state": "ahead"])
        case .conflict(let id, let operation, let isOpen):
            ("conflict", ["id": .string(id), "operation": .string(operation), "state": isOpen ? "open" : "closed"])
        case .credential: nil
        }
    }
}

/// `/v1/events`: the engine's events as Server-Sent Events (docs/reference/admin-api.md#events; WHATWG HTML §9.2).
struct EventRoutes {
    /// After this time without an event a comment is sent, so that proxies and clients know that the stream is alive.
    private static let silence = Duration.seconds(15)

    let feed: EventFeed

    func add(to router: Router<AdminContext>) {
        router.get("/v1/events") { request, context in try stream(request: request, context: context) }
        router.get("/v1/stats/history") { _, _ in Response.json(["items": .array(feed.history), "next": .null]) }
    }

    private func stream(request: Request, context: AdminContext) throws -> Response {
        let query = try AdminQuery(request, known: ["lastEventId"])
        let last = try query.one(named: "lastEventId") ?? request.headers[.lastEventID]
        guard feed.listenerCount < feed.places else {
            return .problem(.noRoom, detail: "\(feed.places) event streams are open already")
        }
        let (feed, channel) = (feed, context.channel)
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
            body: ResponseBody { writer in
                guard var place = feed.join(after: last, hangUp: { channel.close(promise: nil) }) else {
                    return try await writer.finish(nil)
                }
                defer { feed.leave(place) }
                var spoken = ContinuousClock.now
                try await writer.write(ByteBuffer(string: "retry: 2000\n\n"))
                for await _ in place.wakes {
                    guard var text = feed.frames(for: &place) else { break }
                    if text.isEmpty, ContinuousClock.now - spoken >= Self.silence { text = ": still here\n\n" }
                    guard !text.isEmpty else { continue }
                    feed.writing(place, isWriting: true)
                    try await writer.write(ByteBuffer(string: text))
                    feed.writing(place, isWriting: false)
                    spoken = .now
                }
                try await writer.finish(nil)
            })
    }

}
