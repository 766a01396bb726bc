// The process: the machine and other volatile state, the writer's group commit, crashes between any two steps (K4–K13).
import HTTPTypes
import RockpoolCore

/// The state that is lost in a crash.
struct SimulatedProcess {
    var number: Int
    var machine: ReplayMachine
    /// By principal: the newest token seen.
    var credentials: [String: String] = [:]
    var isReachable: [String: Bool] = [:]
    var isProbing: Set<String> = []
    var wakesAt: Timestamp?
    /// Writes that wait for the next transaction.
    var writes: [Write] = []
    var isWriting = false
    /// Outcomes of attempts that are not recorded yet.
    var outcomes: [Int64: (outcome: AttemptOutcome, body: [UInt8])] = [:]

    /// Part of a transaction. `apply` runs at the commit; the step it returns runs afterwards if the process is still alive.
    struct Write {
        var apply: (inout World) -> Agenda.Step
        var failed: Agenda.Step
    }
}

extension World {
    mutating func boot() {
        boots += 1
        disk.contexts = plan.upstreams.mapValues(\.context)
        disk.recover(now: now, asUnsent: plan.sabotage == .recoversAsUnsent)
        checkRecovered()
        process = SimulatedProcess(number: boots, machine: ReplayMachine(contexts: plan.upstreams.mapValues(\.context)))
        note("boot \(boots)")
        for row in disk.rows.map(\.operation) where row.state.hasEnded && plan.sabotage != .forgetsHolds {
            guard let moment = plan.upstreams[row.upstream]?.context.holdsLane(after: row, isDelivered: row.state == .delivered, now: now)
            else {
                continue
            }
            step(.held(upstream: row.upstream, lane: row.lane, principal: row.principal, until: moment))
        }
        recallSession()
        for operation in disk.open { step(.changed(OperationSummary(operation))) }
        reconnect()
    }

    mutating func crash() {
        ghost.crashes += 1
        note("CRASH")
        process = nil
        later(random.milliseconds(100...20_000), "boot") { if $0.process == nil { $0.boot() } }
    }

    /// Schedules a step of this process; a crash before it cancels the step.
    mutating func soon(_ span: TimeSpan, _ name: String, _ step: @escaping Agenda.Step) {
        guard let number = process?.number else { return }
        later(span, name) { world in
            guard world.process?.number == number else { return }
            if !world.isHealed, world.random.chance(world.plan.crashes) { return world.crash() }
            step(&world)
        }
    }

    mutating func step(_ event: ReplayMachine.Event) {
        guard process != nil else { return }
        let chance = random.unit()
        let actions = process?.machine.step(event, now: now, random: chance) ?? []
        note("  \(Self.text(event)) → \(actions)")
        for action in actions { perform(action) }
        guard let wake = process?.machine.nextWake else { return }
        if wake <= now { return violate("P7 the machine wants to be woken in the past") }
        if let armed = process?.wakesAt, armed <= wake { return }
        process?.wakesAt = wake
        soon(wake - now, "tick") {
            $0.process?.wakesAt = nil
            $0.step(.tick)
        }
    }

    private static func text(_ event: ReplayMachine.Event) -> String {
        switch event {
        case .changed(let row):
            "changed \(row.sequence) \(row.method) \(row.lane) of \(row.principal ?? "") needs \(row.needs.sorted()) apart \(row.isApart) \(row.state) \(row.reason.map { "\($0)" } ?? "")"
        case .reread(let row): "reread \(row.sequence) \(row.state)"
        case .settled(let row): "settled \(row.sequence) \(row.state) \(row.reason.map { "\($0)" } ?? "")"
        case .attempted(let operation, .answered(let head), _, _, _): "attempted \(operation.sequence) \(head.status)"
        case .attempted(let operation, .failed(let failure), _, _, _):
            "attempted \(operation.sequence) \(failure.kind) sent \(failure.sent)"
        case .unsendable(let operation, let disposition): "unsendable \(operation.sequence) \(disposition.state)"
        case .looked(let operation, let effect): "looked \(operation.sequence) \(effect)"
        case .failed(let id): "failed \(id)"
        case .refused(let id): "refused \(id)"
        case .reachability(let upstream, let isReachable): "\(upstream) \(isReachable ? "reachable" : "away")"
        case .held(_, let lane, _, let moment): "held \(lane) until \((moment - noon).milliseconds)"
        case .proved(let principal): "\(principal) is proved"
        case .credential(let principal): "credential of \(principal)"
        case .throttled(let id, let moment): "\(id) throttled until \((moment - noon).milliseconds)"
        case .paused(let upstream, let moment): "\(upstream) paused until \((moment - noon).milliseconds)"
        case .resumed: "resumed"
        case .answered(_, let route, _, let sign, _): "\(route): \(sign)"
        case .overruled: "overruled"
        case .urged(let row): "urged \(row.sequence)"
        case .tick: "tick"
        }
    }

    /// Commits `apply` together with all waiting writes, then runs the step it returned.
    mutating func commit(_ apply: @escaping (inout World) -> Agenda.Step, failed: @escaping Agenda.Step) {
        process?.writes.append(SimulatedProcess.Write(apply: apply, failed: failed))
        write()
    }

    private mutating func write() {
        guard let process, !process.isWriting, !process.writes.isEmpty else { return }
        self.process?.isWriting = true
        self.process?.writes = []
        soon(random.milliseconds(1...5), "commit") { world in
            world.process?.isWriting = false
            if !world.isHealed, world.random.chance(world.plan.diskFaults) {
                world.ghost.diskFaults += 1
                world.note("the disk fails")
                for write in process.writes { world.soon(.zero, "failed", write.failed) }
            } else {
                for write in process.writes { world.soon(.zero, "committed", write.apply(&world)) }
            }
            world.write()
        }
    }

    private mutating func perform(_ action: ReplayMachine.Action) {
        switch action {
        case .send(let id, let sequence):
            commit(
                { world in
                    guard let operation = world.disk.lease(sequence, now: world.now) else {
                        return { $0.step(.settled(OperationSummary($0.disk.row(sequence).operation))) }
                    }
                    return { $0.transmit(operation) }
                }, failed: { $0.step(.failed(id: id)) })
        case .look(_, let sequence):
            look(for: disk.row(sequence).operation)
        case .record(let id, let sequence, let disposition):
            let outcome = process?.outcomes.removeValue(forKey: sequence)
            commit(
                { world in
                    let row = world.disk.finish(sequence, disposition, outcome: outcome, now: world.now)
                    return { world in
                        guard let row else { return world.violate("P12 \(sequence) is recorded, and was not in flight") }
                        world.checkSession(row)
                        world.step(.settled(OperationSummary(row)))
                    }
                }, failed: { $0.step(.failed(id: id)) })
        case .move(let id, let sequence, let disposition):
            let from = process?.machine.summary(of: sequence).map { Set([$0.state]) } ?? []
            commit(
                { world in
                    let row = world.disk.move(sequence, disposition, from: from, now: world.now)
                    return { $0.step(.settled(OperationSummary(row))) }
                }, failed: { $0.step(.failed(id: id)) })
        }
    }
}
