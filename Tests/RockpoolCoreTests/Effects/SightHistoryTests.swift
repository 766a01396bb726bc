// Random histories of several programs of two identities, against an API that knows everything (docs/outbox.md#sight).
import Foundation
import Testing

@testable import RockpoolCore

/// Programs read, through copies that may be old, and put back what they have in front of them with a change of their own. The API keeps every
/// version; the sight decides under which condition a write goes out, survives crashes, and is asked nothing else.
@Suite struct SightHistoryTests {
    private static let item = "https://a.test/notes/1"

    /// An API with one item, which names the version of each state.
    private struct API {
        /// The programs whose changes each version contains; its index is the version.
        var versions: [Set<Int>] = [[]]
        var current: Int { versions.count - 1 }

        func tag(_ version: Int) -> String { "\"\(version)\"" }
    }

    private struct Actor {
        let viewer: Viewer
        /// The version that it has in front of it; nil before its first read.
        var displayed: Int?
        /// The version of its last own write: no reply shows it less.
        var own = 0
    }

    /// A wrong use of the sight, which the histories must notice.
    private enum Mistake: CaseIterable {
        /// A reply counts for the newest version that is known, as after a refresh in the background.
        case notesTheNewest
        /// A reply counts for another program of the identity.
        case notesItForAnother
        /// Replies that are not stored are not noted.
        case skipsReplies
        /// A write of one's own is not noted.
        case skipsOwnWrites
        /// The version that the answer to a write names is not noted.
        case skipsTheVersionOfOwnWrites
        /// A crash loses what was noted.
        case forgetsAtACrash
        /// Notes are taken up in another order than they were made in.
        case takesUpInAnotherOrder
    }

    private struct History {
        let mistake: Mistake?
        var random: SeededRandom
        var api = API()
        var sight = Sight()
        var moment: UInt64 = 0
        var actors: [Actor]
        let tells: Bool

        init(seed: UInt64, mistake: Mistake? = nil) {
            self.mistake = mistake
            random = SeededRandom(state: seed &* 7919)
            tells = random.next() % 4 > 0
            actors = (0..<4).map { number in
                let program = Viewer.Program(address: "10.0.0.\(number)", userAgent: "p")
                return Actor(viewer: Viewer(partition: number < 3 ? "shared key" : "alone", program: program), displayed: nil)
            }
        }

        private mutating func tick() -> UInt64 {
            moment += 1
            return moment
        }

        /// - Returns: what is wrong; nil if nothing is.
        mutating func step() -> String? {
            let number = Int(random.next() % UInt64(actors.count))
            switch random.next() % 10 {
            case 0..<4: read(number)
            case 4..<8: return write(number)
            case 8:
                // Somebody else's change, not through the proxy.
                api.versions.append(api.versions[api.current])
            default:
                let records = sight.records.map(\.json)
                sight = Sight()
                if mistake == .forgetsAtACrash { break }
                for record in records { if let record = Sight.Record(json: record) { sight.note(mistaken(record)) } }
            }
            return nil
        }

        /// The record with the moment of an earlier one, if that is the mistake.
        private func mistaken(_ record: Sight.Record) -> Sight.Record {
            guard mistake == .takesUpInAnotherOrder, case .shown(let state, let url, let viewer, _) = record else { return record }
            return .shown(state, url: url, viewer: viewer, asked: 1)
        }

        /// A copy may be older than the server's state, and newer than what others were shown.
        private mutating func read(_ number: Int) {
            let oldest = max(actors[number].own, actors[number].displayed ?? 0)
            let version = oldest + Int(random.next() % UInt64(api.current - oldest + 1))
            let asked = tick()
            actors[number].displayed = version
            if mistake == .skipsReplies { return }
            let noted = mistake == .notesTheNewest ? api.current : version
            let reader = mistake == .notesItForAnother ? (number + 1) % 3 : number
            sight.note(ShownState(version: EntityTag(api.tag(noted))), at: SightHistoryTests.item, to: actors[reader].viewer, asked: asked)
        }

        private mutating func write(_ number: Int) -> String? {
            guard let displayed = actors[number].displayed else { return nil }
            let viewer = actors[number].viewer
            let ground = sight.ground(of: SightHistoryTests.item, for: viewer)
            if let condition = ground.condition {
                if condition != api.tag(displayed) { return "\(viewer) has \(displayed) in front of it, and writes under \(condition)" }
                guard condition == api.tag(api.current) else {
                    // A conflict is on record, and its program reads again.
                    read(number)
                    return nil
                }
            } else if tells || ground == .unknown {
                return "\(viewer) has \(displayed) in front of it, and writes without a condition: \(ground)"
            }
            api.versions.append(api.versions[displayed].union([number]))
            actors[number].own = api.current
            actors[number].displayed = api.current
            if mistake == .skipsOwnWrites { return nil }
            let isTold = tells && mistake != .skipsTheVersionOfOwnWrites
            sight.note(writeTo: SightHistoryTests.item, by: viewer, version: isTold ? api.tag(api.current) : nil, at: tick())
            return nil
        }
    }

    /// `HISTORIES` of them, 3,000. Nothing that a program had not in front of it becomes its condition, so that no change is
    /// lost without a record, and no program meets itself.
    @Test func everyWriteIsMadeOnWhatItsProgramSaw() {
        let count = ProcessInfo.processInfo.environment["HISTORIES"].flatMap { UInt64($0) } ?? 3_000
        for seed in 0..<count {
            var history = History(seed: seed)
            for number in 0..<14 {
                guard let wrong = history.step() else { continue }
                Issue.record("seed \(seed), step \(number): \(wrong)")
                return
            }
        }
    }

    /// The histories notice whatever the engine could do wrong with what it knows.
    @Test(arguments: Mistake.allCases) private func aMistakeIsNoticed(_ mistake: Mistake) {
        for seed in UInt64(0)..<500 {
            var history = History(seed: seed, mistake: mistake)
            for _ in 0..<14 where history.step() != nil { return }
        }
        Issue.record("\(mistake) was not noticed")
    }
}
