// Work that waits for one of a number of places, which clients share (docs/security-model.md#shares-of-clients).
import DequeModule

/// A number of places and those who wait for one. Who has the fewest places is next; of equals, who has waited longest.
package struct FairQueue<Client: Hashable, Work> {
    private struct Line {
        var running = 0
        var waiting = Deque<(number: UInt64, work: Work)>()
    }

    private let limit: Int
    private var lines: [Client: Line] = [:]
    private var arrivals: UInt64 = 0
    /// Places in use.
    package private(set) var running = 0

    /// - Parameter limit: the number of places, at least 1.
    package init(limit: Int) { self.limit = max(1, limit) }

    package var isEmpty: Bool { lines.isEmpty }

    /// The work that waits.
    package var waiting: Int { lines.values.reduce(0) { $0 + $1.waiting.count } }

    /// Takes a place for work of `client`, or lets it wait.
    /// - Returns: true if it begins now.
    package mutating func enter(_ work: Work, of client: Client) -> Bool {
        guard lines[client]?.waiting.isEmpty ?? true, mayBegin(client) else {
            arrivals += 1
            lines[client, default: Line()].waiting.append((arrivals, work))
            return false
        }
        lines[client, default: Line()].running += 1
        running += 1
        return true
    }

    /// Gives back the place of work of `client` that has ended.
    /// - Returns: the work that begins now, and whose it is.
    package mutating func leave(_ client: Client) -> [(client: Client, work: Work)] {
        lines[client]?.running -= 1
        running -= 1
        drop(client)
        var begun: [(client: Client, work: Work)] = []
        while let next = next(), let work = lines[next]?.waiting.popFirst()?.work {
            lines[next]?.running += 1
            running += 1
            begun.append((next, work))
        }
        return begun
    }

    /// Removes work of `client` that waits.
    /// - Returns: false if it does not wait.
    package mutating func withdraw(from client: Client, where isIt: (Work) -> Bool) -> Bool {
        guard let place = lines[client]?.waiting.firstIndex(where: { isIt($0.work) }) else { return false }
        lines[client]?.waiting.remove(at: place)
        drop(client)
        return true
    }

    /// Removes the work that waits and is meant.
    package mutating func withdrawAll(where isMeant: (Work) -> Bool = { _ in true }) -> [(client: Client, work: Work)] {
        var withdrawn: [(client: Client, work: Work)] = []
        for client in Array(lines.keys) {
            let meant = lines[client]?.waiting.filter { isMeant($0.work) } ?? []
            withdrawn += meant.map { (client, $0.work) }
            lines[client]?.waiting.removeAll { isMeant($0.work) }
            drop(client)
        }
        return withdrawn
    }

    private mutating func drop(_ client: Client) {
        if let line = lines[client], line.running == 0, line.waiting.isEmpty { lines[client] = nil }
    }

    private func mayBegin(_ client: Client) -> Bool {
        FairShare.admits(1, held: lines[client]?.running ?? 0, used: running, limit: limit)
    }

    private func next() -> Client? {
        guard running < limit else { return nil }
        return lines.filter { !$0.value.waiting.isEmpty && mayBegin($0.key) }
            .min { ($0.value.running, $0.value.waiting.first?.number ?? 0) < ($1.value.running, $1.value.waiting.first?.number ?? 0) }?.key
    }
}
