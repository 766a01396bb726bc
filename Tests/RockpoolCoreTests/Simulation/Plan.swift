// The parameters of one run: the number of writes, the failure rates, and the properties of its upstreams.
import RockpoolCore

struct Plan {
    /// Deliberate errors of the shell that the simulator must detect (see `SabotageTests`).
    enum Sabotage: CaseIterable {
        /// Sends the 202 before the commit.
        case acknowledgesEarly
        /// Treats operations that were in flight at a crash as unsent.
        case recoversAsUnsent
        /// Uses a new key for every attempt.
        case newKeyPerAttempt
        /// Sends with the credential of any principal.
        case foreignCredential
        /// Sends a request without substituting local ids.
        case forgetsSubstitution
        /// Does not report lost attempts to the machine.
        case forgetsLostAttempts
        /// After a start, ignores the holds of lanes with attempts that may still run.
        case forgetsHolds
        /// Reports an abandoned attempt as unsent.
        case callsLostUnsent
        /// Reports the later of two operations to the machine first.
        case newsOutOfOrder
        /// Reads without the queued writes of the client.
        case readsWithoutOverlay
        /// Sends queued writes on the condition of the first version.
        case conditionsOfTheFirstVersion
        /// Does not work the answers to live writes into the copies.
        case forgetsLiveEffects
    }

    struct Upstream {
        /// True if the server remembers keys; `honoured` in the settings is `.yes` exactly in that case.
        var remembersKeys: Bool
        var context: ReplayContext
        /// The kind of its ETags.
        var tags: Tags
        /// True for a 201 with a `Location`, false for a 201 with only a body.
        var givesLocation: Bool
        /// True if its lists show the result of a create, so that a probe finds it.
        var isFindable: Bool

        enum Tags: CaseIterable { case none, weak, strong }
    }

    var upstreams: [String: Upstream] = [:]
    var clients: Int
    var writesPerClient: Int
    /// Probability of a fault for a request while the network is up.
    var faults: Double
    /// Probability of a kill before a step of the shell.
    var crashes: Double
    /// Probability of a failing commit.
    var diskFaults: Double
    /// Probability that a change of the weather is for the worse.
    var storms: Double
    var sabotage: Sabotage?
    /// True for a run of one client that checks its session guarantees.
    var isSession = false

    /// One client, one upstream that honours keys and strong ETags, nobody else's edits.
    static func session(random: inout SimulationRandom, sabotage: Sabotage? = nil) -> Plan {
        var plan = Plan(random: &random, sabotage: sabotage)
        (plan.clients, plan.isSession) = (1, true)
        plan.writesPerClient = random.number(10...40)
        plan.faults = random.pick([0, 0.1, 0.3])
        let settings = IdempotencySettings(honoured: .yes, ttl: .hours(24), maxProcessing: .seconds(30))
        let context = ReplayContext(idempotency: settings, answeredLimit: 10_000)
        plan.upstreams = ["api": Upstream(remembersKeys: true, context: context, tags: .strong, givesLocation: true, isFindable: true)]
        return plan
    }

    init(random: inout SimulationRandom, sabotage: Sabotage? = nil) {
        clients = random.number(1...3)
        writesPerClient = random.number(2...12)
        faults = random.pick([0, 0.1, 0.3, 0.6])
        crashes = random.pick([0, 0.002, 0.01, 0.03])
        diskFaults = random.pick([0, 0, 0.03])
        storms = random.pick([0.2, 0.5, 0.8])
        self.sabotage = sabotage
        for name in ["api", "shop"].prefix(random.number(1...2)) {
            let remembers = random.chance(0.5)
            let settings = IdempotencySettings(
                honoured: remembers ? .yes : random.pick([.no, .unknown]), ttl: random.pick([.seconds(90), .hours(24)]),
                maxProcessing: .seconds(30))
            upstreams[name] = Upstream(
                remembersKeys: remembers,
                context: ReplayContext(idempotency: settings, uncertainPolicy: random.pick([.ask, .ask, .retry, .drop])),
                tags: random.pick(Upstream.Tags.allCases), givesLocation: random.chance(0.6), isFindable: random.chance(0.5))
        }
    }
}
