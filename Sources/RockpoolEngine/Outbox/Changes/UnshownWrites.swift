// Open writes to undeclared paths, by the paths whose copies lack their effect (docs/outbox.md#files-and-collections).
import RockpoolCore

/// The writes of one upstream that a copy does not include, and that reads of it do not fold in.
struct UnshownWrites {
    /// The open writes of one client that concern a path.
    private struct Writes {
        /// To the path, folded into reads of it that have no query; with the program that wrote, where that is known.
        var folded: [Int64: Viewer.Program?] = [:]
        /// To the path, with an effect that is not known: a POST or a PATCH, a part of a file, a form, a write with a query.
        var unknown: [Int64: Viewer.Program?] = [:]
        /// The number of writes below the path, which its representation may list.
        var belowCount = 0

        var isEmpty: Bool { folded.isEmpty && unknown.isEmpty && belowCount == 0 }
    }

    /// By path, then by `Viewer.partition`.
    private var writes: [FilePath: [String: Writes]] = [:]

    var isEmpty: Bool { writes.isEmpty }

    /// Notes an open write.
    /// - Returns: true if copies of a path lack a write that they did not lack before.
    mutating func open(_ sequence: Int64, at paths: Set<FilePath>, isFolded: Bool, by writer: Viewer) -> Bool {
        var isNews = false
        for path in paths {
            let wasKnown = writes[path] != nil
            let place = isFolded ? \Writes.folded : \Writes.unknown
            let known = writes[path, default: [:]][writer.partition, default: Writes()][keyPath: place].updateValue(
                writer.program, forKey: sequence)
            guard known == nil else { continue }
            isNews = isNews || !wasKnown
            for above in path.ancestors {
                isNews = isNews || writes[above] == nil
                writes[above, default: [:]][writer.partition, default: Writes()].belowCount += 1
            }
        }
        return isNews
    }

    /// Notes that a write has ended.
    mutating func close(_ sequence: Int64, at paths: Set<FilePath>, by writer: Viewer) {
        let principal = writer.partition
        for path in paths {
            let isFolded = writes[path]?[principal]?.folded.removeValue(forKey: sequence) != nil
            let isUnknown = writes[path]?[principal]?.unknown.removeValue(forKey: sequence) != nil
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
    /// - Parameters:
    ///   - hasQuery: true for a read with a query, into which no write is folded.
    ///   - reach: the writes that count; nil for all.
    func concern(_ path: FilePath, of principal: String?, hasQuery: Bool, within reach: Reach? = nil) -> Bool {
        guard let writes = writes[path]?[principal ?? ""] else { return false }
        let counts = { (write: (key: Int64, value: Viewer.Program?)) in reach?.contains(write.key, by: write.value) ?? true }
        return writes.belowCount > 0 || writes.unknown.contains(where: counts) || hasQuery && writes.folded.contains(where: counts)
    }

    /// True if a write with an unknown effect to the path follows the one with this sequence.
    func follow(_ sequence: Int64, at path: FilePath, of principal: String?) -> Bool {
        writes[path]?[principal ?? ""]?.unknown.contains { $0.key > sequence } ?? false
    }
}
