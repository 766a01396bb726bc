// The scheduled steps of a simulation: virtual time advances from entry to entry; entries of the same time run in order of creation.
import RockpoolCore

struct Agenda {
    typealias Step = (inout World) -> Void

    private struct Entry {
        var at: Timestamp
        var order: Int
        var name: String
        var step: Step
    }

    /// Entries in descending order of time, so that the next one is last.
    private var entries: [Entry] = []
    private var made = 0

    mutating func add(at moment: Timestamp, _ name: String, _ step: @escaping Step) {
        made += 1
        let entry = Entry(at: moment, order: made, name: name, step: step)
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].at > moment { low = middle + 1 } else { high = middle }
        }
        entries.insert(entry, at: low)
    }

    var next: Timestamp? { entries.last?.at }

    mutating func take() -> (at: Timestamp, name: String, step: Step)? { entries.popLast().map { ($0.at, $0.name, $0.step) } }
}
