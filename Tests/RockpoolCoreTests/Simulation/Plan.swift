// What one run is like: how much is written, how often things break, what its upstreams promise and keep.
import RockpoolCore

struct Plan {
    /// Steps a shell takes that would be wrong: the simulator must notice each (see `SabotageTests`).
    enum Sabotage: CaseIterable {
        /// Says 202 before the commit.
        case acknowledgesEarly
        /// Takes the operations a crash left in flight for unsent.
        case recoversAsUnsent
        /// Gives every attempt a key of its own.
        case newKeyPerAttempt
        /// Sends with whatever credential is at hand.
        case foreignCredential
        /// Sends a request as the client wrote it.
        case forgetsSubstitution
        /// Tells the machine nothing of lost attempts.
        case forgetsLostAttempts
        /// After a start, lets lanes go on over what may still run.
        case forgetsHolds
        /// Calls what it gave up on unsent.
        case callsLostUnsent
        /// Tells the machine the later of two operations first.
        case newsOutOfOrder
    }

    struct Upstream {
        /// What its server does with keys; `honoured` in the settings is `.yes` exactly when it remembers them.
        var remembersKeys: Bool
        var context: ReplayContext
        /// None, weak or strong.
        var tags: Tags
        /// 201 with a `Location`, or only a body.
        var givesLocation: Bool
        /// Whether its lists show what a create made, so that a look finds it.
        var isFindable: Bool

        enum Tags: CaseIterable { case none, weak, strong }
    }

    var upstreams: [String: Upstream] = [:]
    var clients: Int
    var writesPerClient: Int
    /// Of requests that go wrong though the network is there.
    var faults: Double
    /// Of steps of the shell before which it is killed.
    var crashes: Double
    /// Of commits that fail.
    var diskFaults: Double
    /// Of a change of the weather being for the worse.
    var storms: Double
    var sabotage: Sabotage?

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
