// The writes to files that reads must include, and the order in which they must be sent (docs/outbox.md#files-and-collections).
import HTTPTypes
import RockpoolCore
import RockpoolStore
import Synchronization

/// Writes to paths without a declared resource, by upstream. Stores no contents.
final class FileOverlay: Sendable {
    private struct Writes {
        private(set) var open: [Int64: FileWrite] = [:]
        /// In order of delivery; also writes that were sent at once.
        private(set) var delivered: [FileWrite] = []
        /// The number of writes that change a path.
        private var changed: [FilePath: Int] = [:]
        /// True if clients list collections of the upstream.
        var isListed = false
        /// The collections that clients have listed with their members.
        var listed: Set<FilePath> = []
        /// Paths that a client was told are not there, and when.
        var missing: [MissingFile: Moment] = [:]
        /// Open writes that reads do not include.
        var unshown = UnshownWrites()

        /// True if no read has to include a write, or to show that it lacks one.
        var isEmpty: Bool { open.isEmpty && delivered.isEmpty && unshown.isEmpty }

        /// - Returns: true if it was not open before.
        mutating func open(_ write: FileWrite) -> Bool {
            let before = open.updateValue(write, forKey: write.sequence)
            count(write, by: 1)
            if let before { count(before, by: -1) }
            return before == nil
        }

        mutating func close(_ sequence: Int64) {
            if let write = open.removeValue(forKey: sequence) { count(write, by: -1) }
        }

        mutating func keep(_ write: FileWrite) {
            delivered.append(write)
            count(write, by: 1)
            guard delivered.count > FileOverlay.deliveredLimit else { return }
            for old in delivered.prefix(FileOverlay.deliveredLimit / 2) { count(old, by: -1) }
            delivered.removeFirst(FileOverlay.deliveredLimit / 2)
        }

        /// True if a write changes the path, or one above it.
        func cover(_ path: FilePath) -> Bool {
            var place: FilePath? = path
            while let next = place {
                if changed[next] != nil { return true }
                place = next.parent
            }
            return false
        }

        private mutating func count(_ write: FileWrite, by change: Int) {
            for path in [write.path, write.created].compactMap({ $0 }) {
                let number = changed[path, default: 0] + change
                changed[path] = number == 0 ? nil : number
            }
        }
    }

    /// Maximum number of deliveries remembered per upstream. Above it the older half is dropped.
    private static let deliveredLimit = 2_000

    /// A path as one client sees it.
    private struct MissingFile: Hashable {
        let path: FilePath
        let principal: String?
    }

    /// Time for which that counts, and the number of paths.
    private static let missingFor = TimeSpan.seconds(60)
    private static let missingLimit = 256
    /// Maximum number of collections in `listed` per upstream; above it all are forgotten.
    private static let listedLimit = 1_000

    private let upstreams = Mutex<[String: Writes]>([:])

    /// Records the current state of an operation.
    /// - Returns: true if reads of a path must include a write that they did not include before.
    func note(_ operation: QueuedWrite) -> Bool {
        guard operation.collection == nil else { return false }
        let effect = FileWrite(operation.request)
        let isNews = noteUnshown(operation, of: effect)
        guard var write = effect else { return isNews }
        (write.sequence, write.operation, write.principal) = (operation.sequence, operation.id, operation.principal)
        (write.length, write.at) = (operation.bodyLength, operation.acceptedAt)
        return upstreams.withLock { upstreams in
            switch operation.state {
            case .pending, .inflight, .uncertain, .conflicted, .parked:
                return upstreams[operation.upstream, default: Writes()].open(write)
            case .dead, .cancelled, .superseded: upstreams[operation.upstream]?.close(write.sequence)
            case .delivered:
                upstreams[operation.upstream]?.close(write.sequence)
                write.isDelivered = true
                (write.at, write.ended) = (operation.endedAt ?? operation.acceptedAt, operation.ended ?? .first)
                write.etag = operation.result?.head.fields[.eTag]
                upstreams[operation.upstream, default: Writes()].keep(write)
            }
            return false
        }
    }

    /// Records which copies lack the effect of an operation.
    private func noteUnshown(_ operation: QueuedWrite, of write: FileWrite?) -> Bool {
        let paths = Set(write.map { [$0.path, $0.created].compactMap(\.self) } ?? [FilePath(operation.request.target)])
        return upstreams.withLock { upstreams in
            switch operation.state {
            case .pending, .inflight, .uncertain, .conflicted, .parked:
                return upstreams[operation.upstream, default: Writes()].unshown.open(
                    operation.sequence, at: paths, isFolded: write != nil, by: operation.writer)
            case .dead, .cancelled, .superseded, .delivered:
                upstreams[operation.upstream]?.unshown.close(operation.sequence, at: paths, by: operation.writer)
                return false
            }
        }
    }

    /// Records a write that its upstream has answered at once, where a stored listing may lack it.
    func note(_ request: RequestHead, answer: ResponseHead, length: Int64, upstream: String, principal: String?, at moment: Moment) {
        let isUpload = Invalidation.uploadedObject(of: request) != nil
        let head = isUpload ? RequestHead(method: .put, origin: request.origin, target: request.path) : request
        guard (200...299).contains(answer.status), answer.status != 207, var write = FileWrite(head) else { return }
        if isUpload { write.effect = .derivation(from: write.path) }
        (write.length, write.principal, write.isDelivered) = (length, principal, true)
        (write.at, write.ended) = (moment.at, moment.tick)
        write.etag = answer.fields[.eTag]
        upstreams.withLock { upstreams in
            let isOfWebDAV = WebDAVEffect(request) != nil && request.method != .delete || request.path.hasSuffix("/")
            // A later write ends the effect of one that is remembered.
            let isFollowing = upstreams[upstream].map { $0.isListed || !$0.delivered.isEmpty } ?? false
            guard isOfWebDAV || write.copies || isFollowing else { return }
            upstreams[upstream, default: Writes()].keep(write)
        }
    }

    /// Records that clients list collections of this upstream.
    /// - Parameter collection: one that a client lists with its members.
    func noteListing(of collection: FilePath? = nil, at upstream: String) {
        upstreams.withLock { upstreams in
            upstreams[upstream, default: Writes()].isListed = true
            guard let collection else { return }
            if upstreams[upstream]?.listed.count ?? 0 >= Self.listedLimit { upstreams[upstream]?.listed = [] }
            upstreams[upstream]?.listed.insert(collection)
        }
    }

    /// True if a client has listed the collection with its members.
    func isListed(_ collection: FilePath, at upstream: String) -> Bool {
        upstreams.withLock { $0[upstream]?.listed.contains(collection) == true }
    }

    /// Records that a client was told that there is nothing at a path.
    func noteMissing(_ path: FilePath, upstream: String, principal: String?, at moment: Moment) {
        upstreams.withLock { upstreams in
            if upstreams[upstream]?.missing.count ?? 0 >= Self.missingLimit { upstreams[upstream]?.missing = [:] }
            upstreams[upstream, default: Writes()].missing[MissingFile(path: path, principal: principal)] = moment
        }
    }

    /// True if the client of a MOVE or a COPY has removed its source, or was told a moment ago that there is nothing to move, and has
    /// created nothing since.
    func lacksSource(of write: FileWrite, upstream: String, principal: String?, now: Timestamp) -> Bool {
        switch write.effect {
        case .move, .copy: break
        case .content, .collection, .removal, .derivation: return false
        }
        if case .absent = fold(upstream: upstream, principal: principal, deliveredSince: nil).state(of: write.path) { return true }
        let file = MissingFile(path: write.path, principal: principal)
        guard let moment = upstreams.withLock({ $0[upstream]?.missing[file] }), now - moment.at < Self.missingFor,
            case .server(write.path, nil) = fold(upstream: upstream, principal: principal, deliveredSince: moment.tick).state(
                of: write.path)
        else { return false }
        return true
    }

    /// Returns the collection that a MKCOL needs and its client has not made: where there is nothing as far as the client's writes show, and
    /// what it was told a moment ago. Nil if the parent may be there.
    func gap(above write: FileWrite, upstream: String, principal: String?, now: Timestamp) -> FilePath? {
        guard write.effect == .collection, let parent = write.path.parent else { return nil }
        if let gap = fold(upstream: upstream, principal: principal, deliveredSince: nil).gap(at: parent) { return gap }
        let told = upstreams.withLock { upstreams in
            upstreams[upstream]?.missing.filter { file, moment in
                file.principal == principal && file.path.contains(parent) && now - moment.at < Self.missingFor
            }
        }
        return told?.first { file, moment in
            let since = fold(upstream: upstream, principal: principal, deliveredSince: moment.tick)
            return [file.path, parent].allSatisfy { since.state(of: $0) == .server($0, by: nil) }
        }?.key.path
    }

    /// True if reads of the path may have to include a write, or to show that they lack one.
    func covers(upstream: String, path: @autoclosure () -> FilePath) -> Bool {
        upstreams.withLock { upstreams in
            guard let writes = upstreams[upstream], !writes.isEmpty else { return false }
            let path = path()
            return writes.cover(path) || writes.unshown.cover(path)
        }
    }

    /// True if reads of the path may have to include a write.
    func folds(upstream: String, path: FilePath) -> Bool { upstreams.withLock { $0[upstream]?.cover(path) ?? false } }

    /// True if a copy of what a read asks for lacks the effect of an open write of its client: one below the path, or one to it that is not
    /// folded in.
    /// - Parameter reach: the writes that count; nil for all.
    func lacksWrite(_ request: RequestHead, upstream: String, principal: String?, within reach: Reach? = nil) -> Bool {
        let (path, hasQuery) = (FilePath(request.target), request.target.contains("?"))
        return upstreams.withLock { $0[upstream]?.unshown.concern(path, of: principal, hasQuery: hasQuery, within: reach) ?? false }
    }

    /// True if an open write with an unknown effect changes the file after `write`.
    func isChanged(after write: FileWrite, upstream: String) -> Bool {
        let sequence = write.isDelivered ? 0 : write.sequence
        return upstreams.withLock { $0[upstream]?.unshown.follow(sequence, at: write.path, of: write.principal) ?? false }
    }

    /// True if there are any writes.
    func covers(upstream: String) -> Bool {
        upstreams.withLock { $0[upstream].map { !$0.open.isEmpty || !$0.delivered.isEmpty } ?? false }
    }

    /// Returns the principal's open writes, and those that were delivered since `moment`, in the order of their effect.
    /// - Parameter moment: those that have ended by then are part of the copy; nil for the open ones only.
    func fold(upstream: String, principal: String?, deliveredSince moment: Tick?) -> FileFold {
        upstreams.withLock { upstreams in
            guard let writes = upstreams[upstream] else { return FileFold([]) }
            let late = moment.map { moment in writes.delivered.filter { $0.ended ?? .first >= moment } } ?? []
            let open = writes.open.values.sorted { $0.sequence < $1.sequence }
            return FileFold((late + open).filter { $0.principal == principal })
        }
    }

    /// Returns the public ids of the open writes that must be sent before this one: of those that wait for each other, the last.
    func prerequisites(of write: FileWrite, upstream: String, principal: String?) -> [String] {
        let earlier = upstreams.withLock { upstreams in
            upstreams[upstream]?.open.values.filter { $0.principal == principal && write.mustFollow($0) } ?? []
        }
        return FileWrite.nearest(of: earlier.sorted { $0.sequence < $1.sequence }).map(\.operation)
    }
}

// MARK: - Writes that copies lack

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
