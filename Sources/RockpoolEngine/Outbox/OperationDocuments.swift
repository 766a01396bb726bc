// JSON documents of operations, for the admin API and for the clients that sent them.
import HTTPTypes
import NIOCore
package import RockpoolCore
import RockpoolStore
import Synchronization

/// Describes operations.
package final class OperationDocuments: Sendable {
    let data: DataStore
    let reachability: ReachabilityTable
    let credentials: Credentials
    let events: EngineEvents
    let laneHolds: LaneHolds
    let pauses: UpstreamPauses
    /// The configuration in force.
    let active: ActiveConfiguration
    let now: @Sendable () -> Timestamp

    init(
        data: DataStore, reachability: ReachabilityTable, credentials: Credentials, events: EngineEvents, laneHolds: LaneHolds,
        pauses: UpstreamPauses, active: ActiveConfiguration, now: @escaping @Sendable () -> Timestamp
    ) {
        self.data = data
        self.reachability = reachability
        self.credentials = credentials
        self.events = events
        self.laneHolds = laneHolds
        self.pauses = pauses
        self.active = active
        self.now = now
    }
}

// MARK: - Documents

/// JSON documents of operations: the reason for which each one waits, its blocker and its purge date (docs/outbox.md#waiting;
/// docs/reference/admin-api.md#operation-document).
extension OperationDocuments {
    /// The maximum number of body bytes in the document of one operation; exports contain the whole body.
    package static let shownBodyLimit: Int64 = .mib(1)

    /// Returns the documents of `operations`, in the same order.
    package func documents(of operations: [QueuedWrite]) async throws -> [JSONValue] {
        let standings = try await data.standings(of: operations, rules: rules)
        return operations.map { operation in
            let standing = standings[operation.sequence] ?? OperationRelations()
            return described(OperationDocument.json(of: operation, standing: standing), operation: operation, standing: standing)
        }
    }

    /// Returns the document of one operation with its request, its body, every attempt, and its open conflict.
    package func document(of operation: QueuedWrite) async throws -> JSONValue {
        let standing = try await data.standings(of: [operation], rules: rules)[operation.sequence] ?? OperationRelations()
        var document = described(
            try await data.record(of: operation, bodyLimit: Self.shownBodyLimit), operation: operation, standing: standing)
        document["conflict"] = .optional(operation.state == .conflicted ? try await data.openConflict(of: operation.sequence)?.id : nil)
        return document
    }

    /// Returns the document for the client that sent the write, with the reason for waiting in words and without data of other operations.
    func statusDocument(of operation: QueuedWrite) async throws -> JSONValue {
        let standing = try await data.standings(of: [operation], rules: rules)[operation.sequence] ?? OperationRelations()
        var document = OperationDocument.json(of: operation, standing: standing)
        document["waiting"] = .optional(waiting(operation, standing: standing)?.words)
        return document
    }

    private var rules: LaneRules {
        LaneRules(routes: active.routes, now: now()) { [credentials] in credentials.isProved($0) }
    }

    private func described(_ json: JSONValue, operation: QueuedWrite, standing: OperationRelations) -> JSONValue {
        var json = json
        json["waiting"] = .optional(waiting(operation, standing: standing)?.words)
        json["blockedBy"] = operation.state == .pending ? standing.blocker?.json ?? .null : .null
        let purge = standing.isAwaited ? nil : active.retention.announcedPurge(of: operation, now: now())
        json["client"] = .optional(operation.principal.map(credentials.resolved))
        json["userAgent"] = .optional(operation.request.fields[.userAgent])
        json["bodyBytes"] = .number(JSONNumber(operation.bodyLength))
        json["purgeAt"] = .optional(purge.map(RFC3339.format))
        json["commands"] = .array(OperationSteering.allowed(on: operation).map { .string($0.rawValue) })
        return json
    }

    private func waiting(_ operation: QueuedWrite, standing: OperationRelations) -> WaitReason? {
        let held = laneHolds.end(
            upstream: operation.upstream, lane: operation.lane, forProved: credentials.isProved(operation.principal), now: now())
        return WaitReason(
            operation, standing: standing, reachability: reachability.machine(of: operation.upstream), heldUntil: held,
            pause: pauses.pause(of: active.summary(of: operation)), unread: active.unread, now: now())
    }

    // MARK: - The status document

    /// Returns the reply to a request for a status document, which is served on every authority; nil for any other request
    /// (docs/reference/behaviour.md#status-document; RFC 9110 §15.3.3).
    func statusDocument(for request: RequestHead, trace: Trace) async -> Reply? {
        guard request.target.hasPrefix(RequestTarget.ownPath) else { return nil }
        guard let path = StatusPath(request.target), !path.id.isEmpty else {
            return Reply(Problem(.notFound, detail: "only /.well-known/rockpool/operations/{id} is answered here"), trace)
        }
        guard request.method == .get || request.method == .head else {
            var problem = Problem(.methodNotAllowed, detail: "a status document can only be read (GET, HEAD)")
            problem.allow = "GET, HEAD"
            return Reply(problem, trace)
        }
        let deadline = ContinuousClock.now + .seconds(path.waitSeconds)
        var (before, hasLooked): (OperationState?, Bool) = (nil, false)
        while true {
            let version = events.version
            do {
                guard let operation = try await data.operation(id: path.id), isSender(of: operation, request: request) else {
                    // Another node of the fleet may have accepted it a moment ago.
                    if !hasLooked, data.isOfFleet {
                        hasLooked = true
                        await data.catchUp(ifOlderThan: .zero, within: .seconds(1))
                        continue
                    }
                    return Reply(Problem(.notFound, detail: "no operation \(path.id)"), trace)
                }
                // An operation that was parked or in conflict at the first read may continue, so the wait goes on.
                let isStuck = operation.state == .parked || operation.state == .conflicted
                let isSettled =
                    operation.state.hasEnded || operation.state == .dead || (isStuck && before.map { $0 != operation.state } == true)
                before = operation.state
                if isSettled || ContinuousClock.now >= deadline {
                    return document(operation, json: try await statusDocument(of: operation), isHead: request.method == .head, trace: trace)
                }
            } catch {
                return Reply(Problem(.notQueueable, detail: "the outbox cannot be read: \(error)", retryAfter: 5), trace)
            }
            _ = await events.change(after: version, before: deadline)
        }
    }

    /// True if `request` carries a credential of the principal that sent the operation. A write without a credential is readable by every
    /// client that knows its id.
    private func isSender(of operation: QueuedWrite, request: RequestHead) -> Bool {
        let origin = operation.request.origin
        let rule = active.routes.upstream(for: origin, target: operation.request.target)?.identity ?? .auto
        guard let sender = operation.principal, rule != .single else { return true }
        // A credential is identified relative to the operation's origin, whatever authority the document is requested from.
        let asked = RequestHead(method: .get, origin: origin, target: operation.request.target, fields: request.fields)
        let reader = credentials.identity(of: asked, rule: rule).principal
        return reader.map { credentials.resolved($0) } == credentials.resolved(sender)
    }

    private func document(_ operation: QueuedWrite, json: JSONValue, isHead: Bool, trace: Trace) -> Reply {
        var head = ResponseHead(status: 200, fields: [.contentType: "application/json", .cacheControl: "no-store"])
        head.fields[.rockpoolOperation] = operation.id
        head.fields[.rockpoolState] = operation.state.rawValue
        if !operation.state.hasEnded, operation.state != .dead { head.fields[.retryAfter] = "2" }
        let body = ByteBuffer(bytes: json.serialized())
        return Reply(head: head, body: isHead ? .none(length: Int64(body.readableBytes)) : .bytes(body), trace: trace)
    }
}

/// `/.well-known/rockpool/operations/{id}[?wait=seconds]`.
private struct StatusPath {
    let id: String
    /// 0…60.
    let waitSeconds: Int64

    init?(_ target: String) {
        let prefix = QueuedWrite.statusPrefix
        guard target.hasPrefix(prefix) else { return nil }
        let parts = target.dropFirst(prefix.count).split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        id = String(parts[0])
        let wait = parts.count < 2 ? nil : parts[1].split(separator: "&").first { $0.hasPrefix("wait=") }
        waitSeconds = wait.flatMap { Int64($0.dropFirst(5)) }.map { min(max($0, 0), 60) } ?? 0
    }
}

// MARK: - Records of the ring

/// Adds queued writes to the ring in the states that an operator wants to see (docs/reference/admin-api.md#requests).
package final class OperationRecorder: Sendable {
    /// Maximum number of changes that wait; further ones are not recorded.
    private static let waitingLimit = 1024
    /// Deliveries that are recorded within one second.
    private static let deliveryRate = 100

    private let data: DataStore
    private let documents: OperationDocuments
    private let ring: ExchangeRing
    private let now: @Sendable () -> Timestamp
    private let changes: AsyncStream<String>
    private let deliveries = Mutex((second: Int64.min, count: 0))

    init(
        data: DataStore, documents: OperationDocuments, events: EngineEvents, ring: ExchangeRing, now: @escaping @Sendable () -> Timestamp
    ) {
        (self.data, self.documents, self.ring, self.now) = (data, documents, ring, now)
        let (changes, change) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(Self.waitingLimit))
        self.changes = changes
        events.listen { [weak self] event in
            if case .operation(let id, let state, isNews: true) = event, self?.isShown(state) == true { change.yield(id) }
        }
    }

    private func isShown(_ state: OperationState) -> Bool {
        switch state {
        case .dead, .conflicted, .uncertain, .parked: true
        case .delivered:
            deliveries.withLock { [second = now().seconds] deliveries in
                if deliveries.second != second { deliveries = (second, 0) }
                deliveries.count += 1
                return deliveries.count <= Self.deliveryRate
            }
        default: false
        }
    }

    /// Records changes until it is cancelled.
    package func run() async {
        for await id in changes {
            guard let write = try? await data.operation(id: id), isShownNow(write.state) else { continue }
            let document = try? await documents.documents(of: [write]).first
            let words = document?["waiting"]?.string ?? write.reason?.rawValue ?? write.lastError ?? ""
            var kept = write
            kept.request.fields = RecordedExchange.Content.kept(write.request.fields, of: nil)
            kept.body = .none
            kept.result = write.result.map { result in
                var result = result
                (result.body, result.head.fields) = ([], RecordedExchange.Content.kept(result.head.fields, of: nil))
                return result
            }
            ring.append(.operation(kept, why: words), at: now(), represents: 1)
        }
    }

    private func isShownNow(_ state: OperationState) -> Bool {
        [.dead, .conflicted, .uncertain, .parked, .delivered].contains(state)
    }
}
