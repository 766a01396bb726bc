// Open writes to undeclared paths, by the paths whose copies lack their effect (docs/outbox.md#files-and-collections).
import RockpoolCore

/// The writes of one upstream that a copy does not include, and that reads of it do not fold in.
struct UnshownWrites {
    /// The open writes of one client that concern a path.
    private struct Writes {
        /// To the path, folded into reads of it that have no query.
        var folded: Set<Int64> = []
        /// To the path, with an effect that is not known: a POST or a PATCH, a part of a file, a form, a write with a query.
        var unknown: Set<Int64> = []
        /// The number of writes below the path, which its representation may list.
        var belowCount = 0

        var isEmpty: Bool { folded.isEmpty && unknown.isEmpty && belowCount == 0 }
    }

    /// By path, then by principal.
    private var writes: [FilePath: [String?: Writes]] = [:]

    var isEmpty: Bool { writes.isEmpty }

    /// Notes an open write.
    /// - Returns: true if copies of a path lack a write that they did not lack before.
    mutating func open(_ sequence: Int64, at paths: Set<FilePath>, isFolded: Bool, principal: String?) -> Bool {
        var isNews = false
        for path in paths {
            let wasKnown = writes[path] != nil
            let place = isFolded ? \Writes.folded : \Writes.unknown
            guard writes[path, default: [:]][principal, default: Writes()][keyPath: place].insert(sequence).inserted else { continue }
            isNews = isNews || !wasKnown
            for above in path.ancestors {
                isNews = isNews || writes[above] == nil
                writes[above, default: [:]][principal, default: Writes()].belowCount += 1
            }
        }
        return isNews
    }

    /// Notes that a write has ended.
    mutating func close(_ sequence: Int64, at paths: Set<FilePath>, principal: String?) {
        for path in paths {
            let isFolded = writes[path]?[principal]?.folded.remove(sequence) != nil
            let isUnknown = writes[path]?[principal]?.unknown.remove(sequence) != nil
            guard isFolded || isUnknown else { continue }
            for above in path.ancestors { writes[above]?[principal]?.belowCount -= 1 }
            for place in [path] + path.ancestors where writes[place]?[principal]?.isEmpty == true {
                writes[place]?[principal] = nil
                if writes[place]?.isEmpty == true { writes[place] = nil }
            }
        }
    }

    /// True if a copy of the path may lack a write of any client.
    func cover(_ path: FilePath) -> Bool { writes[path] != nil }

    /// True if a copy of the path lacks the effect of a write of this client.
    /// - Parameter hasQuery: true for a read with a query, into which no write is folded.
    func concern(_ path: FilePath, of principal: String?, hasQuery: Bool) -> Bool {
        guard let writes = writes[path]?[principal] else { return false }
        return !writes.unknown.isEmpty || writes.belowCount > 0 || hasQuery && !writes.folded.isEmpty
    }

    /// True if a write with an unknown effect to the path follows the one with this sequence.
    func follow(_ sequence: Int64, at path: FilePath, of principal: String?) -> Bool {
        writes[path]?[principal]?.unknown.contains { $0 > sequence } ?? false
    }
}
