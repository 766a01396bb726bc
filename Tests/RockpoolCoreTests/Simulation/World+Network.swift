// One attempt: its request is built as the shell builds it, then exposed to all network and server faults (docs/outbox.md#evidence,
// docs/outbox.md#simulation).
import HTTPTypes
import RockpoolCore

/// The fault of one request while the network is up.
enum Fault: CaseIterable {
    case refused, connectTimeout, droppedBefore, answerDropped, late
    case failedAfterCommit, failedBefore, badGateway, gatewayTimeoutLate, gatewayTimeoutAfterCommit
    case throttledSeconds, throttledDate, brokenAfterCommit, bodyCut, tooEarly
}

/// A request in progress, and the process that waits for its response.
struct Journey {
    var operation: QueuedWrite
    var request: RequestHead
    var body: [UInt8]
    var process: Int
}

extension World {
    /// Time limit for the first byte of the response.
    static let firstByte = TimeSpan.seconds(10)

    mutating func transmit(_ leased: QueuedWrite) {
        var operation = leased
        if plan.sabotage == .forgetsLostAttempts { operation.lostAt = nil }
        var body: [UInt8] = []
        if case .inline(let bytes) = operation.body { body = bytes }
        var request = operation.request
        if plan.sabotage != .forgetsSubstitution {
            do {
                (request, body) = try LocalIDSubstitution.apply(head: request, body: body, map: disk.mappings.mapValues(\.id))
            } catch {
                return step(.unsendable(operation, Disposition(state: .dead, reason: .unmapped, countsAsAnswered: false)))
            }
        }
        let isForeign = plan.sabotage == .foreignCredential
        let token =
            operation.principal.flatMap { process?.credentials[$0] }
            ?? (isForeign ? process?.credentials.sorted { $0.key < $1.key }.first?.value : nil)
        guard let token else {
            return step(.unsendable(operation, Disposition(state: .parked, reason: .auth, countsAsAnswered: false)))
        }
        request.fields[.authorization] = token
        request.fields[.ifMatch] = condition(of: operation, request)
        let attempt = disk.row(operation.sequence).attempts.count
        request.fields[.idempotencyKey] = operation.idempotencyKey + (plan.sabotage == .newKeyPerAttempt ? "-\(attempt)" : "")
        depart(Journey(operation: operation, request: request, body: body, process: boots))
    }

    private mutating func depart(_ journey: Journey) {
        switch weather[journey.operation.upstream] ?? .fine {
        case .away:
            let kind = random.pick([TransferFailure.Kind.refused, .dns, .connectTimeout, .tls])
            fail(journey, kind, .no, after: random.milliseconds(1...2000))
        case .captive:
            let page = SimulatedUpstream.Answer(status: 200, fields: [.contentType: "text/html"], body: Array("<html>".utf8))
            let redirect = SimulatedUpstream.Answer(status: 302, fields: [.location: "http://portal.example/login"])
            let answer = random.pick([page, redirect, SimulatedUpstream.Answer(status: 511)])
            reply(journey, answer, after: random.milliseconds(5...200))
        case .throttled: suffer(random.pick([.throttledSeconds, .throttledDate]), journey)
        case .fine where !isHealed && random.chance(plan.faults): suffer(random.pick(Fault.allCases), journey)
        case .fine: suffer(nil, journey)
        }
    }

    private mutating func suffer(_ fault: Fault?, _ journey: Journey) {
        let way = random.milliseconds(1...200)
        if let fault {
            ghost.faults += 1
            note("  fault \(fault) for \(journey.operation.sequence)")
        }
        switch fault {
        case .refused: fail(journey, .refused, .no, after: way)
        case .connectTimeout: fail(journey, .connectTimeout, .no, after: .seconds(2))
        case .droppedBefore: fail(journey, .reset, random.pick([.maybe, .yes]), after: way)
        case .tooEarly: reply(journey, SimulatedUpstream.Answer(status: random.pick([408, 421, 425])), after: way)
        case .badGateway: reply(journey, SimulatedUpstream.Answer(status: 502), after: way)
        case .throttledSeconds:
            let wait = random.number(0...20)
            reply(journey, throttling("\(wait)"), after: way)
        case .throttledDate:
            reply(journey, throttling(HTTPDate.format(now + .seconds(Int64(random.number(1...20))))), after: way)
        case nil, .answerDropped, .late, .failedAfterCommit, .failedBefore, .gatewayTimeoutLate, .gatewayTimeoutAfterCommit,
            .brokenAfterCommit, .bodyCut:
            later(way, "arrives") { $0.arrive(journey, fault) }
            if fault == .late { fail(journey, .firstByteTimeout, .yes, after: Self.firstByte) }
        }
    }

    private mutating func throttling(_ retryAfter: String) -> SimulatedUpstream.Answer {
        SimulatedUpstream.Answer(status: random.pick([429, 503]), fields: [.retryAfter: retryAfter])
    }

    private mutating func arrive(_ journey: Journey, _ fault: Fault?) {
        let (operation, request, body) = (journey.operation, journey.request, journey.body)
        checkArrival(of: operation, request, body)
        let back = random.milliseconds(1...200)
        if upstreams[operation.upstream]?.refuses(request.fields[.authorization]) == true {
            return reply(journey, SimulatedUpstream.Answer(status: 401), after: back, fault == .late ? .late : nil)
        }
        if fault == .failedBefore { return reply(journey, SimulatedUpstream.Answer(status: 500), after: back) }
        if let seen = upstreams[operation.upstream]?.begin(request, body, now: now) {
            return reply(journey, seen, after: back, fault == .gatewayTimeoutLate ? nil : fault)
        }
        guard fault == .late || fault == .gatewayTimeoutLate else { return apply(journey, after: back, fault) }
        // A request that is still executing may take effect until the upstream's processing limit.
        ghost.zombies += 1
        let rest = random.milliseconds(10_000...29_700)
        later(rest, "late") { $0.apply(journey, after: back, fault) }
        if fault == .gatewayTimeoutLate { reply(journey, SimulatedUpstream.Answer(status: 504), after: back) }
    }

    private mutating func apply(_ journey: Journey, after back: TimeSpan, _ fault: Fault?) {
        guard let (answer, hasEffect) = upstreams[journey.operation.upstream]?.apply(journey.request, journey.body) else { return }
        note("  \(journey.request.method) \(journey.request.target) of \(journey.operation.sequence): \(answer.status)")
        if hasEffect { checkEffect(of: journey.operation) }
        reply(journey, answer, after: back, fault)
    }

    private mutating func reply(_ journey: Journey, _ answer: SimulatedUpstream.Answer, after span: TimeSpan, _ fault: Fault? = nil) {
        var answer = answer
        switch fault {
        case .late, .gatewayTimeoutLate: return
        case .answerDropped: return fail(journey, .reset, .yes, after: span)
        case .brokenAfterCommit: return fail(journey, .protocolError, .yes, after: span)
        case .failedAfterCommit: answer = SimulatedUpstream.Answer(status: 500)
        case .gatewayTimeoutAfterCommit: answer = SimulatedUpstream.Answer(status: 504)
        // A 409 without the body that mentions the key is taken for a conflict, which the conflict service decides by a read.
        case .bodyCut where !plan.isSession || answer.status < 300: answer.body = []
        default: break
        }
        let reply = answer
        soon(span, "answer") { world in
            let head = ResponseHead(status: reply.status, fields: reply.fields)
            let mapping = ServerID.inAnswer(head, json: try? JSONValue.parse(reply.body), to: journey.request, resource: nil).map {
                ServerMapping(id: $0.id, url: $0.url)
            }
            world.outcome(.answered(head), reply.body, of: journey, mapping: journey.operation.localID == nil ? nil : mapping)
        }
    }

    private mutating func fail(_ journey: Journey, _ kind: TransferFailure.Kind, _ sent: TransferFailure.Sent, after span: TimeSpan) {
        soon(span, "failure") { world in
            let told: TransferFailure.Sent = world.plan.sabotage == .callsLostUnsent ? .no : sent
            world.outcome(.failed(TransferFailure(kind: kind, sent: told)), [], of: journey, mapping: nil)
        }
    }

    /// A response is dropped if the process that sent the request has died.
    private mutating func outcome(_ outcome: AttemptOutcome, _ body: [UInt8], of journey: Journey, mapping: ServerMapping?) {
        guard process?.number == journey.process else { return }
        let operation = journey.operation
        process?.outcomes[operation.sequence] = (outcome, body)
        step(.attempted(operation, outcome, body: body, mapping: mapping))
        switch outcome {
        case .failed(let failure) where failure.sent == .no || random.chance(0.3): turn(operation.upstream, isReachable: false)
        case .answered where weather[operation.upstream] == .captive: turn(operation.upstream, isReachable: false)
        default: break
        }
    }

    // MARK: Probes and reachability

    mutating func look(for operation: QueuedWrite) {
        soon(random.milliseconds(5...300), "look") { world in
            let effect = world.weather[operation.upstream] == .fine ? world.effect(of: operation) : .unknown
            world.step(.looked(operation, effect))
        }
    }

    private mutating func effect(of operation: QueuedWrite) -> ObservedEffect {
        guard let upstream = upstreams[operation.upstream], case .inline(let bytes) = operation.body else { return .unknown }
        let mark = (try? JSONValue.parse(bytes))?["mark"]
        if operation.request.target.hasSuffix("/touch") { return .unknown }
        if operation.localID != nil {
            guard upstream.plan.isFindable,
                let (path, entity) = upstream.entities.filter({ $0.value.body["mark"] == mark }).min(by: { $0.key < $1.key }),
                let id = entity.body["id"]?.integer
            else { return .unknown }
            let url = operation.request.origin.url + path
            return .present(ServerMapping(id: ServerID(text: "\(id)", isNumber: true), url: url))
        }
        guard let (request, _) = try? LocalIDSubstitution.apply(head: operation.request, body: [], map: disk.mappings.mapValues(\.id))
        else {
            return .unknown
        }
        guard let entity = upstream.entities[request.target] else { return request.method == .delete ? .present(nil) : .unknown }
        if request.method != .delete, entity.body["mark"] == mark { return .present(nil) }
        guard let condition = request.fields[.ifMatch], let tag = upstream.tag(request.target), tag != condition else { return .unknown }
        return .absent
    }

    mutating func turn(_ upstream: String, isReachable: Bool) {
        guard let process, process.isReachable[upstream] != isReachable else { return }
        self.process?.isReachable[upstream] = isReachable
        step(.reachability(upstream: upstream, isReachable: isReachable))
        if !isReachable { probe(upstream) }
    }

    /// Sends a safe request every second or two while the upstream is offline and an operation waits.
    private mutating func probe(_ upstream: String) {
        guard process?.isProbing.insert(upstream).inserted == true else { return }
        soon(random.milliseconds(1000...2000), "probe") { world in
            world.process?.isProbing.remove(upstream)
            if world.weather[upstream] == .fine || world.weather[upstream] == .throttled {
                world.turn(upstream, isReachable: true)
            } else {
                world.probe(upstream)
            }
        }
    }

    /// At the start the reachability is unknown; the first probe determines it.
    mutating func reconnect() {
        for name in upstreamNames where process?.isReachable[name] != true {
            process?.isReachable[name] = false
            probe(name)
        }
    }
}
