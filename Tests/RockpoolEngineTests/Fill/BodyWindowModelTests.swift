// Every order of the events of a body's readers, its pull and its end (docs/architecture.md#rules).
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolEngine

/// Models `SharedBodyWindow` with its caller `SharedBody`, one step at a time: the copy takes a chunk before the window does, and the task that
/// must end the body does so some time later.
private struct Model {
    enum Step: CaseIterable {
        static let allCases: [Step] = [.read(0), .read(1), .arrive, .copy, .fail, .leave(0), .leave(1), .end, .join]

        /// A reader requests the next bytes.
        case read(Int)
        /// The puller receives the upstream's next chunk, or the end.
        case arrive
        /// The copy has taken that chunk, or the window takes it afterwards.
        case copy
        /// The upstream breaks off.
        case fail
        /// A reader leaves; if it was the last, the rest is not fetched.
        case leave(Int)
        /// A pending ending is carried out.
        case end
        /// Another reader joins.
        case join
    }

    enum Pull: Equatable { case none, asking, copying, handing }

    static let total: Int64 = 2
    var window = SharedBodyWindow()
    var readers: [Int?] = [nil, nil]
    var came: Int64 = 0
    /// Bytes in the copy.
    var copied: Int64 = 0
    var pull = Pull.none
    var isAbandoned = false
    /// Endings that are still to be carried out.
    var due: [SharedBodyWindow.Ending] = []
    /// The size of the copy when its ending was settled, and that ending.
    var kept: (bytes: Int64, ending: SharedBodyWindow.Ending)?
    var errors: [String] = []

    init() { readers[0] = window.join() }

    /// Performs one step; returns false when the step is not possible in this state.
    mutating func take(_ step: Step) -> Bool {
        switch step {
        case .read(let place):
            guard let reader = readers[place] else { return false }
            switch window.next(for: reader) {
            case .chunk: break
            case .pull:
                if pull != .none { errors.append("two pulls at once") }
                pull = .asking
            default: return false
            }
        case .arrive:
            guard pull == .asking else { return false }
            if isAbandoned { return end(.failed(.cancelled), byPull: true) }
            if came == Self.total { return end(.whole, byPull: true) }
            came += 1
            pull = .copying
        case .copy:
            guard pull == .copying || pull == .handing else { return false }
            if pull == .copying {
                // A copy must not take more bytes after its ending was settled.
                if kept == nil { copied += 1 } else { errors.append("a chunk comes to the copy after its end") }
                pull = .handing
                return true
            }
            pull = .none
            if let ending = window.append(ByteBuffer(bytes: [0]), isCopied: true) { return end(ending, byPull: true) }
        case .fail:
            guard pull == .asking, !isAbandoned else { return false }
            return end(.failed(.cancelled), byPull: true)
        case .leave(let place):
            guard let leaving = readers[place] else { return false }
            readers[place] = nil
            switch window.leave(leaving, decide: { _ in .abort(.tooMuchRemains) }) {
            case .abort(let isPulling):
                isAbandoned = true
                if isPulling != (pull != .none) { errors.append("said to be pulling: \(isPulling), is: \(pull)") }
                if !isPulling { due.append(.failed(.cancelled)) }
            case .finish: errors.append("finished though told to abort")
            case nil: break
            }
        case .end:
            guard !due.isEmpty else { return false }
            return end(due.removeFirst(), byPull: false)
        case .join:
            guard let place = readers.firstIndex(of: nil), let joined = window.join() else { return false }
            readers[place] = joined
        }
        return true
    }

    private mutating func end(_ ending: SharedBodyWindow.Ending, byPull: Bool) -> Bool {
        if !byPull, pull != .none { errors.append("ended while a pull is under way") }
        pull = .none
        let settled = window.close(ending)
        if kept == nil { kept = (copied, settled) }
        window.finish(settled)
        return true
    }

    /// Violations of the invariants that hold in every state.
    var faults: [String] {
        var faults = errors
        if let kept, kept.bytes != copied { faults.append("kept \(kept.bytes) of \(copied) bytes") }
        if let kept, kept.bytes != window.end, kept.ending != .whole { faults.append("\(kept.bytes) bytes kept, \(window.end) told of") }
        if case .whole? = kept?.ending, copied != Self.total { faults.append("whole with \(copied) bytes") }
        if kept != nil, window.ending == nil { faults.append("kept, but its readers were not told of the end") }
        return faults
    }
}

@Suite struct BodyWindowModelTests {
    @Test func inEveryOrderTheCopyIsKeptAsItIs() {
        var seen = 0
        var ended = 0
        func explore(_ model: Model, _ path: [Model.Step]) {
            seen += 1
            if model.kept != nil { ended += 1 }
            #expect(model.faults.isEmpty, "\(path): \(model.faults)")
            guard path.count < 11, model.faults.isEmpty else { return }
            for step in Model.Step.allCases {
                var next = model
                if next.take(step) { explore(next, path + [step]) }
            }
        }
        explore(Model(), [])
        #expect(seen > 500 && ended > 200, "\(seen) states explored, \(ended) of them after an ending")
    }

    /// Every body ends: with no further input, it ends once all readers have left or have read it.
    @Test func everyBodyEnds() {
        var seeds = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            var model = Model()
            for _ in 0..<40 { _ = model.take(Model.Step.allCases.randomElement(using: &seeds) ?? .join) }
            // From here on every possible step is taken, and the readers read to the end.
            for _ in 0..<40 { for step in [Model.Step.end, .arrive, .copy, .read(0), .read(1)] { _ = model.take(step) } }
            for step in [Model.Step.leave(0), .leave(1)] { _ = model.take(step) }
            for _ in 0..<4 { for step in [Model.Step.end, .arrive, .copy] { _ = model.take(step) } }
            #expect(model.kept != nil && model.faults.isEmpty, "\(model.faults)")
        }
    }
}
