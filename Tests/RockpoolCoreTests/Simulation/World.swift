// The complete state of a run as one value: time, network, disk, the process and its crashes, all from one seed
// (docs/outbox.md#simulation).
import HTTPTypes
import RockpoolCore

final class Trace {
    var lines: [String] = []
}

struct World {
    let seed: UInt64
    let plan: Plan
    var random: SimulationRandom
    var now = noon
    var agenda = Agenda()
    var disk = SimulatedDisk()
    var upstreams: [String: SimulatedUpstream] = [:]
    var weather: [String: Weather] = [:]
    var people: [Person] = []
    /// Nil while the process is down.
    var process: SimulatedProcess?
    var boots = 0
    /// True once no further faults occur.
    var isHealed = false
    var ghost = Ghost()
    /// The recorded steps, for a replay of one seed.
    let trace: Trace?

    /// The condition of the network between the process and an upstream.
    enum Weather: CaseIterable { case fine, away, captive, throttled }

    init(seed: UInt64, sabotage: Plan.Sabotage? = nil, isSession: Bool = false, tracing: Bool = false) {
        self.seed = seed
        random = SimulationRandom(seed: isSession ? SimulationRandom.scattered(seed) : seed)
        plan = isSession ? .session(random: &random, sabotage: sabotage) : Plan(random: &random, sabotage: sabotage)
        trace = tracing ? Trace() : nil
        for (name, upstream) in plan.upstreams {
            upstreams[name] = SimulatedUpstream(upstream)
            weather[name] = .fine
        }
        for index in 0..<plan.clients { people.append(Person(name: "person\(index)")) }
    }

    var upstreamNames: [String] { plan.upstreams.keys.sorted() }

    /// Runs to the end and returns the violations in order.
    mutating func run() -> [String] {
        boot()
        if plan.isSession {
            beginSession()
            later(random.milliseconds(0...2000), "client") { $0.converse(left: $0.plan.writesPerClient) }
        }
        for index in people.indices where !plan.isSession {
            later(random.milliseconds(0...2000), "person") { $0.act(index, writes: $0.plan.writesPerClient) }
        }
        for name in upstreamNames { later(random.milliseconds(0...20_000), "weather") { $0.changeWeather(of: name) } }
        later(.seconds(Int64(random.number(60...300))), "heal") { $0.heal() }
        drain(until: noon + .minutes(30))
        checkQuiet()
        checkSessionEnd()
        tidy()
        checkEnd()
        return disk.violations + ghost.violations
    }

    private mutating func drain(until end: Timestamp) {
        var steps = 0
        while let next = agenda.next, ghost.violations.isEmpty, disk.violations.isEmpty {
            steps += 1
            guard next <= end, steps < 100_000, let entry = agenda.take() else {
                violate("P7 no rest after \(steps) steps until \(next - noon)")
                return
            }
            now = entry.at
            ghost.steps += 1
            note(entry.name)
            entry.step(&self)
        }
    }

    /// A user discards operations that need a decision until none is left: no operation may be stuck for ever.
    private mutating func tidy() {
        for _ in 0..<200 where ghost.violations.isEmpty && disk.violations.isEmpty {
            // Operations that need a decision first, else the oldest.
            guard let stuck = disk.open.min(by: { ($0.place, $0.sequence) < ($1.place, $1.sequence) }) else { return }
            let decided = disk.open.first { OperationSteering.discard.allowedFrom.contains($0.state) && $0.state != .pending } ?? stuck
            if OperationSteering.discard.allowedFrom.contains(decided.state) { steer(.discard, decided.sequence) }
            drain(until: now + .minutes(15))
        }
        if ghost.violations.isEmpty, disk.violations.isEmpty, !disk.open.isEmpty {
            violate("P7 left over: \(disk.open.map { "\($0.sequence) \($0.state)" })")
        }
    }

    mutating func later(_ span: TimeSpan, _ name: String, _ step: @escaping Agenda.Step) { agenda.add(at: now + span, name, step) }

    mutating func violate(_ what: String) {
        note("VIOLATION \(what)")
        ghost.violations.append(what)
    }

    func note(_ what: @autoclosure () -> String) {
        if let trace { trace.lines.append("\((now - noon).milliseconds) \(what())") }
    }

    private mutating func changeWeather(of name: String) {
        guard !isHealed else { return }
        weather[name] = random.chance(plan.storms) ? random.pick([.away, .away, .captive, .throttled]) : .fine
        note("weather of \(name): \(weather[name].map { "\($0)" } ?? "")")
        if !plan.isSession, random.chance(0.3) { upstreams[name]?.edit("/notes/\(random.number(1...3))", Int64(ghost.steps)) }
        if random.chance(0.2) {
            let person = random.pick(people).name
            upstreams[name]?.generation[person, default: 0] += 1
            note("tokens of \(person) expire at \(name)")
        }
        later(random.milliseconds(1000...40_000), "weather") { $0.changeWeather(of: name) }
    }

    /// Ends all faults and lets every user show a credential.
    private mutating func heal() {
        isHealed = true
        for name in upstreamNames { weather[name] = .fine }
        if process == nil { boot() }
        for index in people.indices { showCredential(of: index, isFresh: true) }
        reconnect()
    }
}
