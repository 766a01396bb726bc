// What a write waits for: the table of what each open operation holds back, and the same order in the machine (docs/outbox.md#lanes).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct LaneOrderTests {
    /// An earlier operation of a lane, and the later ones of the same client and of another one that wait for it.
    struct Case: Sendable, CustomTestStringConvertible {
        var earlier: OperationSummary
        var own: Set<Later>
        var others: Set<Later> = []
        var testDescription: String { "\(earlier.method) \(earlier.state) \(earlier.reason.map { "\($0)" } ?? "")" }
    }

    enum Later: CaseIterable, Sendable { case edit, post }

    private static func later(_ kind: Later, of principal: String?) -> OperationSummary {
        switch kind {
        case .edit: summary(2, method: .put, principal: principal)
        case .post: summary(2, method: .post, principal: principal)
        }
    }

    private static func case_(
        _ method: HTTPRequest.Method, _ state: OperationState, reason: OperationReason? = nil, probes: Int = 0, isStrict: Bool = false,
        own: Set<Later> = [], others: Set<Later> = []
    ) -> Case {
        Case(
            earlier: summary(1, state, reason: reason, method: method, principal: "ann", sent: noon, probes: probes, isStrict: isStrict),
            own: own, others: others)
    }

    private static let all = Set(Later.allCases)

    /// Under `honoured: no` and `uncertain: ask`, on one undeclared path.
    static let table: [Case] = [
        // What is sent, or will be, keeps the order of its client whatever the method. A POST is apart from other clients.
        case_(.put, .pending, own: all, others: [.edit]), case_(.delete, .inflight, own: all, others: [.edit]),
        case_(.patch, .pending, own: all, others: [.edit]),
        case_(.post, .pending, own: all), case_(.post, .inflight, own: all),
        // A refusal holds nothing.
        case_(.post, .dead, reason: .rejected), case_(.put, .dead, reason: .rejected), case_(.patch, .dead, reason: .exhausted),
        case_(.post, .parked, reason: .redirected), case_(.put, .parked, reason: .redirected),
        // A conflict holds what builds on it.
        case_(.put, .conflicted, own: [.edit]), case_(.delete, .conflicted, own: [.edit]), case_(.post, .conflicted),
        // An unknown effect holds its entity while it is looked for.
        case_(.patch, .uncertain, own: [.edit], others: [.edit]), case_(.patch, .uncertain, probes: 3),
        case_(.post, .uncertain), case_(.post, .uncertain, probes: 3),
        // A resend is harmless: it is as good as pending.
        case_(.put, .uncertain, own: all, others: [.edit]),
        // A credential releases all of its client in order.
        case_(.put, .parked, reason: .auth, own: all), case_(.post, .parked, reason: .auth, own: all),
        // `on_refused: hold`.
        case_(.post, .dead, isStrict: true, own: all), case_(.put, .conflicted, isStrict: true, own: all),
        case_(.post, .conflicted, isStrict: true, own: all), case_(.post, .uncertain, probes: 3, isStrict: true, own: all),
        case_(.post, .parked, reason: .redirected, isStrict: true, own: all),
    ]

    private static func order(_ operations: [OperationSummary]) -> ReplayOrder {
        ReplayOrder(operations, context: { _ in context() }, now: noon)
    }

    @Test(arguments: table) func eachOpenOperationHoldsWhatTheTableSays(_ row: Case) {
        for kind in Later.allCases {
            var order = Self.order([row.earlier])
            #expect((order.blocker(of: Self.later(kind, of: "ann")) != nil) == row.own.contains(kind), "\(kind) of the same client")
            #expect((order.blocker(of: Self.later(kind, of: "bob")) != nil) == row.others.contains(kind), "\(kind) of another client")
        }
    }

    @Test(arguments: table) func machineKeepsTheSameOrder(_ row: Case) {
        for (principal, held) in [("ann", row.own), ("bob", row.others)] {
            for kind in Later.allCases {
                var replay = ReplayMachineTests.wide()
                replay.machine.reconfigure(["notes": context()])
                _ = replay.step(.changed(row.earlier))
                let actions = replay.step(.changed(Self.later(kind, of: principal)))
                #expect(actions.contains(.send(id: "2", sequence: 2)) != held.contains(kind), "\(kind) of \(principal)")
            }
        }
    }

    /// What waits for one in conflict does not hold a POST, and what waits for a credential holds everything.
    @Test func whatStandsAsideIsPassedByWhatDoesNotBuildOnIt() {
        var replay = ReplayMachineTests.wide()
        #expect(replay.accept(summary(1, .conflicted, method: .put), summary(2, method: .put)) == [])
        #expect(replay.accept(summary(3, method: .post)) == sent(3))
        #expect(replay.accept(summary(4, method: .post)) == [], "the order of the POSTs")
        #expect(replay.answered(summary(3, method: .post)) == sent(4))
        _ = replay.answered(summary(4, method: .post))
        #expect(replay.accept(summary(1, method: .put)) == sent(1))
        #expect(replay.answered(summary(1, method: .put)) == sent(2))
    }

    @Test(arguments: [400, 403, 404, 405, 409, 412, 413, 415, 422, 501]) func refusedPostHoldsNoLaterOne(_ status: Int) {
        var replay = ReplayMachineTests.wide()
        #expect(replay.accept(summary(1, method: .post), summary(2, method: .post)) == sent(1))
        var next = replay.answered(summary(1, method: .post), answer(status))
        // The first 403 is tried once more.
        if next == sent(1) { next = replay.answered(summary(1, method: .post), answer(status)) }
        #expect(replay.machine.count == 2 && (next == sent(2) || status == 403), "\(next)")
    }

    /// A person's retry goes when it can, also after what has passed it.
    @Test func retriedOperationGoesWhenItCan() {
        var replay = ReplayMachineTests.wide()
        #expect(replay.accept(summary(1, .dead), summary(2)) == sent(2))
        #expect(replay.accept(summary(3)) == [])
        #expect(replay.accept(summary(1)) == [], "one at a time")
        #expect(replay.answered(summary(2)) == sent(1))
        #expect(replay.answered(summary(1)) == sent(3))
    }

    /// By the last look the lane goes on by itself, within `uncertain_hold`.
    @Test(arguments: [
        (TimeSpan.seconds(30), TimeSpan.seconds(60)), (.seconds(600), .seconds(60)), (.seconds(30), .seconds(5)),
    ])
    func laneGoesOnAfterTheLooks(longest: TimeSpan, hold: TimeSpan) {
        var settings = ReplayContext(idempotency: IdempotencySettings(honoured: .no, maxProcessing: longest))
        settings.uncertainHold = hold
        let first = settings.nextProbe(after: 0, now: noon)
        let second = settings.nextProbe(after: 1, now: first)
        let last = settings.nextProbe(after: 2, now: second)
        #expect(last - noon <= hold && last - noon <= longest + .seconds(1))
        #expect(settings.nextProbe(after: 3, now: last) >= noon + longest, "the policy applies when the attempt has ended")
        var replay = Replay(["notes": settings])
        #expect(replay.accept(summary(1, .uncertain, due: first), summary(2)) == [])
        var (row, next) = (summary(1, .uncertain, due: first), [ReplayMachine.Action]())
        for probes in 0..<3 {
            let looks = replay.later(settings.nextProbe(after: probes, now: replay.now) - replay.now)
            #expect(looks == [.look(id: "1", sequence: 1)])
            next = replay.settle(replay.step(.looked(inflight(row), .unknown)), of: row)
            row.probes += 1
        }
        #expect(next == sent(2) && replay.now - noon <= hold)
    }

    // MARK: dependencies

    /// By state of the needed operation: what only keeps an order goes on, what names it waits.
    @Test(arguments: [
        (summary(1, .dead, lane: "x"), true), (summary(1, .parked, lane: "x", reason: .redirected), true),
        (summary(1, .conflicted, lane: "x"), true), (summary(1, .uncertain, lane: "x", probes: 3), true),
        (summary(1, .uncertain, lane: "x", method: .post), true), (summary(1, .uncertain, lane: "x"), false),
        (summary(1, .parked, lane: "x", reason: .auth, principal: "ann"), false), (summary(1, lane: "x", due: noon + .hours(1)), false),
    ])
    func refusalReleasesWhatOnlyFollows(_ needed: OperationSummary, _ isReleased: Bool) {
        for (follower, expected) in [(summary(2, needs: [1], follows: [1]), isReleased), (summary(2, needs: [1]), false)] {
            var replay = ReplayMachineTests.wide()
            _ = replay.step(.changed(needed))
            #expect(replay.accept(follower).contains(.send(id: "2", sequence: 2)) == expected)
            var order = Self.order([needed, follower])
            #expect((order.blocker(of: follower) == nil) == expected)
        }
    }

    /// The chain of a group goes on after a refusal in its midst, and where one of it names the refused one.
    @Test func chainsGoOnAfterARefusal() {
        var replay = ReplayMachineTests.wide()
        #expect(replay.accept(summary(1, lane: "a"), summary(2, lane: "b", needs: [1], follows: [1])) == sent(1))
        #expect(replay.accept(summary(3, lane: "c", needs: [1, 2], follows: [2]), summary(4, lane: "d", needs: [3], follows: [3])) == [])
        // A refusal narrows the gate to one.
        #expect(replay.answered(summary(1, lane: "a"), answer(400)) == sent(2))
        #expect(replay.answered(summary(2, lane: "b")) == sent(4), "3 names the refused one; 4 only comes after 3")
        #expect(replay.accept(summary(1, .cancelled, lane: "a")) == sent(3))
    }

    // MARK: clients without a credential

    @Test func addressesTellAnonymousClientsApart() {
        func put(_ sequence: Int64, _ state: OperationState = .pending, at address: String?) -> OperationSummary {
            summary(sequence, state, method: .put, address: address)
        }
        var replay = ReplayMachineTests.wide()
        #expect(replay.accept(put(1, .conflicted, at: "10.0.0.1"), put(2, at: "10.0.0.1")) == [])
        #expect(replay.accept(put(3, at: "10.0.0.2")) == sent(3))
        #expect(replay.accept(put(4, at: nil)) == [], "the order among clients")
        #expect(replay.answered(put(3, at: "10.0.0.2")) == sent(4))
        var order = Self.order([put(1, .conflicted, at: "10.0.0.1")])
        #expect(order.blocker(of: put(9, at: "10.0.0.1")) != nil && order.blocker(of: put(9, at: "10.0.0.2")) == nil)
    }

    @Test func postsOfManyClientsAreNotSerialised() {
        var replay = ReplayMachineTests.wide()
        let posts = (Int64(1)...8).map { summary($0, method: .post, address: "10.0.0.\(($0 - 1) % 4)") }
        #expect(posts.flatMap { replay.accept($0) } == sent(1, 2, 3, 4), "one of each client")
        #expect(replay.answered(posts[2]) == sent(7))
    }

    // MARK: any history

    /// The machine sends exactly what the slow order permits, after any sequence of changes.
    @Test(arguments: 0..<400 as Range<UInt64>) func machineAgreesWithTheSlowOrder(_ seed: UInt64) {
        var random = SimulationRandom(seed: seed)
        var replay = ReplayMachineTests.wide()
        _ = replay.step(.proved(principal: "ann"))
        _ = replay.step(.reachability(upstream: "notes", isReachable: false))
        var open: [Int64: OperationSummary] = [:]
        for step in 0..<Int.random(in: 1...40, using: &random) {
            let known = open.keys.sorted().randomElement(using: &random)
            if let known, var changed = open[known], Int.random(in: 0..<2, using: &random) == 0 {
                (changed.state, changed.reason, changed.probes) = Self.state(&random, of: changed.principal)
                changed.nextAttemptAt = Self.due(changed.state)
                if Int.random(in: 0..<4, using: &random) == 0 { changed.state = .delivered }
                open[known] = changed.state.hasEnded ? nil : changed
                _ = replay.step(.changed(changed))
            } else if open.count < 14 {
                let new = Self.operation(Int64(step + 1), among: open.keys.sorted(), &random)
                open[new.sequence] = new
                _ = replay.step(.changed(new))
            }
        }
        // Waits for earlier attempts are over.
        _ = replay.later(.minutes(2))
        let went = Self.sendings(&replay)
        var order = ReplayOrder(
            Array(open.values), context: { _ in context() }, isProved: { $0 == "ann" }, now: replay.now)
        let free = Set(open.values.filter { $0.state == .pending && order.blocker(of: $0) == nil }.map(\.sequence))
        #expect(
            went == free,
            "seed \(seed): sent \(went.sorted()), free \(free.sorted()) of \(open.values.sorted { $0.sequence < $1.sequence })")
    }

    /// Returns what is sent once the upstream is reachable. The gate is opened wide by other operations, which come first.
    private static func sendings(_ replay: inout Replay) -> Set<Int64> {
        let others = (Int64(101)...108).map { summary($0, lane: "other\($0)", accepted: noon - .hours(1)) }
        for other in others { _ = replay.accept(other) }
        var actions = replay.step(.reachability(upstream: "notes", isReachable: true))
        var went: Set<Int64> = []
        while !actions.isEmpty {
            let sent = actions.compactMap { action in if case .send(_, let sequence) = action { sequence } else { nil } }
            went.formUnion(sent.filter { $0 <= 100 })
            actions = sent.filter { $0 > 100 }.flatMap { replay.answered(others[Int($0 - 101)]) }
        }
        return went
    }

    private static func state(_ random: inout SimulationRandom, of principal: String?) -> (OperationState, OperationReason?, Int) {
        let states: [(OperationState, OperationReason?, Int)] = [
            (.pending, nil, 0), (.pending, nil, 0), (.pending, nil, 0), (.dead, .rejected, 0), (.conflicted, .editEdit, 0),
            (.uncertain, .lostAnswer, 0), (.uncertain, .lostAnswer, 3), (.parked, .redirected, 0),
            // Without a principal it is moved by time, and busy then.
            (.parked, principal == nil ? .redirected : .auth, 0),
        ]
        return states.randomElement(using: &random) ?? (.pending, nil, 0)
    }

    /// What is parked without a principal is tried again at this time, by the machine itself.
    private static func due(_ state: OperationState) -> Timestamp { state == .parked ? .distantFuture : noon }

    private static func operation(_ sequence: Int64, among others: [Int64], _ random: inout SimulationRandom) -> OperationSummary {
        let method = [HTTPRequest.Method.put, .patch, .post, .post, .delete].randomElement(using: &random) ?? .put
        let principal = ["ann", "bob", nil].randomElement(using: &random) ?? nil
        let (state, reason, probes) = Self.state(&random, of: principal)
        var needs: Set<Int64> = []
        if Int.random(in: 0..<4, using: &random) == 0 { needs = Set(others.shuffled(using: &random).prefix(2)) }
        let follows = needs.filter { _ in Bool.random(using: &random) }
        return summary(
            sequence, state, lane: ["a", "b", "c"].randomElement(using: &random) ?? "a", reason: reason, method: method,
            principal: principal, sent: noon, due: due(state), probes: probes, needs: needs, follows: follows,
            address: principal == nil ? ["10.0.0.1", "10.0.0.2"].randomElement(using: &random) : nil,
            isStrict: Int.random(in: 0..<8, using: &random) == 0)
    }
}
