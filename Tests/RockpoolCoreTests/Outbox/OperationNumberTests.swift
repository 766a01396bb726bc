// An operation's number changes when a fleet takes it over; its identity is its id (docs/fleet.md#away).
import RockpoolCore
import Testing

@Suite struct OperationNumberTests {
    private static let held: Int64 = 1 << 52

    private static func machine() -> Replay {
        var replay = Replay()
        replay.machine = ReplayMachine(contexts: ["notes": context(honoured: .yes)], changesNumbers: true)
        _ = replay.step(.reachability(upstream: "notes", isReachable: true))
        return replay
    }

    /// A write with an id that its number does not say.
    private static func row(_ number: Int64, id: String, _ state: OperationState = .pending, lane: String = "a") -> OperationSummary {
        var row = summary(number, state, lane: lane)
        row.id = id
        return row
    }

    private static func ids(_ actions: [ReplayMachine.Action]) -> [String] {
        actions.compactMap { if case .send(let id, _) = $0 { id } else { nil } }
    }

    @Test func aPlaceAtTheGateIsGivenBackUnderAnotherNumber() {
        var replay = Self.machine()
        #expect(Self.ids(replay.accept(Self.row(Self.held, id: "x"))) == ["x"])
        #expect(replay.machine.running == ["notes": 1])
        // Handed over while it was to be sent, which fails: a held one cannot be claimed.
        #expect(replay.accept(Self.row(7, id: "x")) == [])
        #expect(replay.step(.failed(id: "x")) == [])
        #expect(replay.machine.running == ["notes": 0])
        #expect(replay.machine.takeMissed() == ["x"])
        #expect(Self.ids(replay.step(.reread(Self.row(7, id: "x")))) == ["x"])
        #expect(replay.answered(Self.row(7, id: "x")) == [])
        #expect(replay.machine.running == ["notes": 0] && replay.machine.count == 0)
        #expect(Self.ids(replay.accept(Self.row(8, id: "y"))) == ["y"])
    }

    @Test func anAnswerCountsWhateverNumberTheOperationHasByThen() {
        var replay = Self.machine()
        #expect(Self.ids(replay.accept(Self.row(Self.held, id: "x"), Self.row(Self.held + 1, id: "y"))) == ["x"])
        // The store leases by the id, and knows the new number before the machine does.
        #expect(Self.ids(replay.answered(Self.row(7, id: "x"))) == ["y"])
        #expect(replay.machine.count == 1)
    }

    @Test func whatIsToldTooLateMakesNoSecondOperation() {
        var replay = Self.machine()
        _ = replay.step(.reachability(upstream: "notes", isReachable: false))
        #expect(replay.accept(Self.row(7, id: "x"), Self.row(Self.held, id: "x")) == [])
        #expect(replay.machine.count == 1)
        #expect(replay.machine.takeMissed() == ["x"])
        #expect(replay.step(.reread(Self.row(7, id: "x"))) == [])
        #expect(replay.machine.count == 1)
    }

    @Test func aNumberThatIsAnothersByNowNamesThatOne() {
        var replay = Self.machine()
        _ = replay.step(.reachability(upstream: "notes", isReachable: false))
        #expect(replay.accept(Self.row(1, id: "mine"), Self.row(1, id: "theirs", lane: "b")) == [])
        #expect(replay.machine.summary(of: 1)?.id == "theirs")
        #expect(replay.machine.takeMissed() == ["mine"])
        _ = replay.step(.reread(Self.row(2, id: "mine")))
        let first = Self.ids(replay.step(.reachability(upstream: "notes", isReachable: true)))
        #expect(first == ["theirs"])
        #expect(Self.ids(replay.answered(Self.row(1, id: "theirs", lane: "b"))) == ["mine"])
    }

    @Test func whatNeedsAnOperationWaitsForItUnderItsNewNumber() {
        var replay = Self.machine()
        _ = replay.step(.reachability(upstream: "notes", isReachable: false))
        var second = Self.row(Self.held + 1, id: "y", lane: "b")
        second.needs = [Self.held]
        #expect(replay.accept(Self.row(Self.held, id: "x"), second, Self.row(7, id: "x")) == [])
        #expect(Self.ids(replay.step(.reachability(upstream: "notes", isReachable: true))) == ["x"])
        #expect(Self.ids(replay.answered(Self.row(7, id: "x"))) == ["y"])
    }

    /// What the machine counts as running is at any time what its driver has not answered, whatever gets another number and when.
    @Test(arguments: 0..<40) func whatRunsIsWhatIsUnderWay(seed: Int) {
        var random = SimulationRandom(seed: UInt64(seed))
        var replay = Self.machine()
        var rows: [String: OperationSummary] = [:]
        var underWay: Set<String> = []
        var (nextHeld, nextShared, count) = (Self.held, Int64(1), 0)
        func take(_ actions: [ReplayMachine.Action]) {
            var actions = actions[...]
            while let action = actions.popFirst() {
                switch action {
                case .send(let id, _), .look(let id, _):
                    #expect(underWay.insert(id).inserted, "\(id) twice")
                case .record(let id, _, let disposition), .move(let id, _, let disposition):
                    underWay.remove(id)
                    rows[id]?.state = disposition.state
                    rows[id]?.nextAttemptAt = disposition.nextAttemptAt ?? replay.now
                    guard let row = rows[id] else { continue }
                    if row.state.hasEnded { rows[id] = nil }
                    actions += replay.step(.settled(row))
                }
            }
        }
        func chosen(_ ids: some Collection<String>) -> String? { ids.isEmpty ? nil : ids.sorted()[random.number(0...ids.count - 1)] }
        for _ in 0..<400 {
            switch random.number(0...7) {
            case 0, 1:
                count += 1
                let isHeld = random.number(0...1) == 0
                let row = Self.row(isHeld ? nextHeld : nextShared, id: "op\(count)", lane: "\(random.number(0...3))")
                if isHeld { nextHeld += 1 } else { nextShared += 1 }
                rows[row.id] = row
                take(replay.step(.changed(row)))
            case 2, 3:
                // Handed over; what was told before may come after that.
                guard let id = chosen(rows.filter { $0.value.sequence >= Self.held }.keys), let before = rows[id] else { continue }
                rows[id]?.sequence = nextShared
                rows[id]?.place = nextShared
                nextShared += 1
                if let row = rows[id] { take(replay.step(.changed(row))) }
                if random.number(0...2) == 0 { take(replay.step(.changed(before))) }
            case 4, 5:
                guard let id = chosen(underWay), let row = rows[id] else { continue }
                if row.state == .uncertain || row.state == .inflight {
                    var operation = inflight(row)
                    operation.state = .uncertain
                    take(replay.step(.looked(operation, .unknown)))
                } else {
                    take(
                        replay.step(
                            .attempted(
                                inflight(row),
                                [answer(200), answer(500), .failed(TransferFailure(kind: .reset, sent: .yes))][random.number(0...2)],
                                body: [])))
                }
            case 6:
                guard let id = chosen(underWay) else { continue }
                underWay.remove(id)
                take(replay.step(random.number(0...1) == 0 ? .failed(id: id) : .refused(id: id)))
            default: take(replay.later(.seconds(Int64(random.number(0...39)))))
            }
            for id in replay.machine.takeMissed() { if let row = rows[id] { take(replay.step(.reread(row))) } }
            #expect(replay.machine.running["notes"] == underWay.count)
            #expect(replay.machine.count == rows.count)
        }
        // Nothing is stuck.
        for _ in 0..<5_000 where !rows.isEmpty {
            if let id = chosen(underWay), let row = rows[id] {
                if row.state == .uncertain || row.state == .inflight {
                    var operation = inflight(row)
                    operation.state = .uncertain
                    take(replay.step(.looked(operation, .absent)))
                } else {
                    take(replay.step(.attempted(inflight(row), answer(200), body: [])))
                }
            } else {
                take(replay.later(.seconds(1)))
            }
            for id in replay.machine.takeMissed() { if let row = rows[id] { take(replay.step(.reread(row))) } }
        }
        let waiting = rows.values.filter { [.pending, .uncertain].contains($0.state) }
        #expect(waiting.isEmpty, "\(waiting.map { "\($0.id) \($0.sequence) \($0.state)" })")
    }
}
