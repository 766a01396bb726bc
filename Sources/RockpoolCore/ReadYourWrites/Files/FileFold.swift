// The state of a file as its client must see it: that of the server, changed by the client's own writes (docs/outbox.md#files-and-collections).

/// Writes to the files of one upstream, folded in order of acceptance.
package struct FileFold: Sendable {
    package enum State: Hashable, Sendable {
        /// As the server has it, under this path: another one after a MOVE or a COPY, which `by` then is.
        case server(FilePath, by: FileWrite?)
        case content(FileWrite)
        case collection(FileWrite)
        case absent(FileWrite)
        /// It has come through more moves and copies than are followed.
        case unclear
    }

    /// The moves and copies through which one file is followed.
    static let hopLimit = 64
    /// The writes that are searched for the files within one collection, one of them as often as it is copied, and the bytes of their paths.
    private static let (searchLimit, byteLimit) = (500_000, Int.mib(2))

    /// In order of acceptance.
    package let writes: [FileWrite]
    private var index: Index?

    package init(_ writes: [FileWrite]) { self.writes = writes }

    /// The same fold for the states of many files: each is found without a search of all writes.
    package var indexed: FileFold {
        var fold = self
        fold.index = Index(writes)
        return fold
    }

    /// Returns the state of the file, following it back through the writes.
    package func state(of path: FilePath) -> State {
        var (path, end, hops) = (path, writes.count, 0)
        var cause: FileWrite?
        while let index = last(concerning: path, before: end) {
            let write = writes[index]
            switch write.effect {
            case .content: return .content(write)
            case .collection: return .collection(write)
            case .removal: return .absent(write)
            case .derivation: return .server(path, by: cause)
            case .move(let destination), .copy(let destination, _):
                guard let origin = path.moved(from: destination, to: write.path) else { return .absent(write) }
                (path, cause) = (origin, cause ?? write)
            }
            (end, hops) = (index, hops + 1)
            if hops > Self.hopLimit { return .unclear }
        }
        return .server(path, by: cause)
    }

    /// The place of the last write before `end` that decides about a path.
    private func last(concerning path: FilePath, before end: Int) -> Int? {
        index.map { $0.last(concerning: path, before: end) } ?? writes[..<end].lastIndex { $0.concerns(path) }
    }

    /// True if the path is within a collection that an open write makes: if the server shows nothing of it, it is not there.
    package func isWithinNew(_ path: FilePath) -> Bool {
        writes.contains { !$0.isDelivered && $0.effect == .collection && $0.path != path && $0.path.contains(path) }
    }

    /// The path that the writes leave without anything, at this one or above it: it was removed, or is a collection that is to be made, and
    /// nothing within it is this path. Nil if they do not show that the path lacks.
    package func gap(at path: FilePath) -> FilePath? {
        switch state(of: path) {
        case .absent: path
        case .server(path, nil):
            writes.last { !$0.isDelivered && $0.effect == .collection && $0.path != path && $0.path.contains(path) }?.path
        case .server, .content, .collection, .unclear: nil
        }
    }

    /// Returns the paths within a collection that the writes create, also by moving or copying what an earlier one of them has created; some
    /// of them may be gone again. What a move or a copy replaces is gone with everything below it (RFC 4918 §9.8.4).
    /// - Parameter isDeep: false for the members of the collection alone.
    /// - Returns: nil if they are more than are followed.
    package func created(within collection: FilePath, isDeep: Bool) -> Set<FilePath>? {
        var found: Set<FilePath> = []
        var (steps, bytes) = (0, 0)
        // Collections whose content before a write is shown at another path.
        var rest = [(place: collection, shown: collection, end: writes.count)]
        while let next = rest.popLast() {
            var (place, end) = (next.place, next.end)
            while end > 0 {
                end -= 1
                steps += 1
                guard steps <= Self.searchLimit, bytes <= Self.byteLimit else { return nil }
                let write = writes[end]
                if let made = write.created, made != place, isDeep ? place.contains(made) : made.parent == place,
                    let path = made.moved(from: place, to: next.shown), found.insert(path).inserted
                {
                    bytes += path.text.utf8.count
                    if isDeep, write.takesTree { rest.append((write.path, path, end)) }
                }
                guard let origin = write.origin(of: place) else { break }
                place = origin
            }
        }
        return found
    }

    /// The places of writes by the paths that they concern.
    fileprivate struct Index: Sendable {
        /// Of those that concern a path alone, and of those that concern everything below it too; ascending.
        private var exact: [FilePath: [Int]] = [:]
        private var deep: [FilePath: [Int]] = [:]

        init(_ writes: [FileWrite]) {
            for (index, write) in writes.enumerated() {
                switch write.effect {
                case .content, .collection, .derivation: exact[write.path, default: []].append(index)
                case .removal: deep[write.path, default: []].append(index)
                case .move(let destination):
                    deep[write.path, default: []].append(index)
                    if destination != write.path { deep[destination, default: []].append(index) }
                case .copy(let destination, isDeep: true): deep[destination, default: []].append(index)
                case .copy(let destination, isDeep: false): exact[destination, default: []].append(index)
                }
            }
        }

        func last(concerning path: FilePath, before end: Int) -> Int? {
            var last = exact[path].flatMap { Self.last(in: $0, before: end) }
            guard !deep.isEmpty else { return last }
            for place in [path] + path.ancestors {
                guard let found = deep[place].flatMap({ Self.last(in: $0, before: end) }), found > last ?? -1 else { continue }
                last = found
            }
            return last
        }

        private static func last(in places: [Int], before end: Int) -> Int? {
            var (low, high) = (0, places.count)
            while low < high {
                let middle = (low + high) / 2
                if places[middle] < end { low = middle + 1 } else { high = middle }
            }
            return low > 0 ? places[low - 1] : nil
        }
    }
}

extension FileWrite {
    /// True if it decides about the state of a path.
    fileprivate func concerns(_ path: FilePath) -> Bool {
        switch effect {
        case .content, .collection, .derivation: self.path == path
        case .removal: self.path.contains(path)
        case .move(let destination): destination.contains(path) || self.path.contains(path)
        case .copy(let destination, let isDeep): isDeep ? destination.contains(path) : destination == path
        }
    }

    /// True if it moves or copies everything below its path too.
    fileprivate var takesTree: Bool {
        switch effect {
        case .move, .copy(_, isDeep: true): true
        case .copy, .content, .collection, .removal, .derivation: false
        }
    }

    /// The path under which the content of a collection was before this write; nil if nothing that was there before is there now.
    fileprivate func origin(of place: FilePath) -> FilePath? {
        switch effect {
        case .removal: path.contains(place) ? nil : place
        case .move(let destination): place.moved(from: destination, to: path) ?? (path.contains(place) ? nil : place)
        case .copy(let destination, isDeep: true): place.moved(from: destination, to: path) ?? place
        case .copy(let destination, isDeep: false): destination == place ? nil : place
        case .content, .collection, .derivation: place
        }
    }
}
