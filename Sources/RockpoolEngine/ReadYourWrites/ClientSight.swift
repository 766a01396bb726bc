// Notes what replies show their clients (docs/outbox.md#sight).
import Dispatch
import Foundation
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// The `Sight` of one server.
final class ClientSight: Sendable {
    private let state = Mutex(Sight())
    private let ticks: Ticks
    /// `Sight.changes`.
    private let changes = Atomic<UInt64>(0)
    /// Nil if nothing is kept over a restart.
    private let log: SightLog?
    private let now: @Sendable () -> Timestamp

    /// - Parameters:
    ///   - directory: where the notes are kept over a restart; nil for nowhere.
    ///   - index: seals the secrets of URLs there.
    init(directory: String?, index: IndexSeal, ticks: Ticks, now: @escaping @Sendable () -> Timestamp) {
        (log, self.ticks, self.now) = (directory.map { SightLog(in: $0, index: index) }, ticks, now)
    }

    /// Counts a moment: those of later calls are greater.
    func moment() -> UInt64 { UInt64(clamping: ticks.next().number) }

    /// Notes what a hot reply shows. Where nothing has changed since it was noted last for the same program, that costs a comparison.
    func note(_ showing: Showing, at url: String, to program: Viewer.Program?) {
        guard showing.notedAs.load(ordering: .relaxed) != Self.mark(changes.load(ordering: .acquiring), program) else { return }
        let state = showing.state.again(from: .cache, at: now())
        let now = note(state, at: url, to: Viewer(partition: showing.partition, program: program), asked: moment())
        showing.notedAs.store(Self.mark(now, program), ordering: .relaxed)
    }

    private static func mark(_ changes: UInt64, _ program: Viewer.Program?) -> UInt64 {
        changes &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(bitPattern: program?.number ?? 0)
    }

    /// Notes what a reply shows.
    /// - Parameter asked: the moment when the client asked.
    /// - Returns: `Sight.changes`.
    @discardableResult
    func note(_ shown: ShownState, at url: String, to viewer: Viewer, asked: UInt64) -> UInt64 {
        change(.shown(shown, url: url, viewer: viewer, asked: asked))
    }

    /// Notes the end of a write.
    func note(_ answer: ResponseHead, to request: RequestHead, by viewer: Viewer) {
        let tag = answer.fields[.eTag].flatMap { EntityTag($0) }
        let version = tag.flatMap { $0.isStrong && LocalETag($0) == nil ? $0.fieldValue : nil }
        let moment = moment()
        change(.written(url: request.url, viewer: viewer, version: version, at: moment))
        // What lies at a destination is another thing now.
        if let destination = WebDAVEffect.destination(of: request) {
            change(.written(url: request.at(destination).url, viewer: viewer, version: nil, at: moment))
        }
    }

    /// What a write of a viewer builds on.
    func ground(of url: String, for viewer: Viewer, replacement: JSONValue? = nil) -> Sight.Ground {
        state.withLock { $0.ground(of: url, for: viewer, replacement: replacement) }
    }

    /// The waiting writes that a viewer has in front of it; nil for all of its identity.
    func reach(of url: String, for viewer: Viewer) -> Reach? { state.withLock { $0.reach(of: url, for: viewer) } }

    @discardableResult
    private func change(_ record: Sight.Record) -> UInt64 {
        state.withLock { sight in
            let before = sight.changes
            sight.note(record)
            guard sight.changes != before else { return before }
            changes.store(sight.changes, ordering: .releasing)
            if log?.append(record) == true { log?.shorten(to: sight) }
            return sight.changes
        }
    }

    // MARK: over a restart

    /// Takes up what the last run has left, whose moments are earlier, as its ticks are.
    func takeUp() {
        guard let log else { return }
        state.withLock { sight in
            for record in log.read() { sight.note(record) }
            changes.store(sight.changes, ordering: .releasing)
            log.begin(with: sight.records)
        }
    }

    /// Keeps everything for the next start, at a clean stop: nothing is under way any more.
    func keep() { log?.end(with: state.withLock(\.records)) }
}

extension RoutePlan {
    /// True for a read of what its client may change later: an item of a declared resource, or a path without one.
    var showsState: Bool {
        guard !isWrite, upstream != nil, route.map({ $0.kind == .standard }) ?? true else { return false }
        guard let entity, entity.resource != nil else { return true }
        return entity.isItem && entity.action == nil
    }

    /// True for a read of an item of a declared resource: its content may be the base of a merge.
    var showsItem: Bool { showsState && entity?.resource != nil }
}

extension RequestContext {
    /// Who asks.
    var viewer: Viewer {
        let program = Viewer.Program(address: exchange.clientAddress, userAgent: original.fields.value(of: "user-agent") ?? "")
        return Viewer(partition: identity.partition, program: program)
    }
}

extension ClientSight {
    /// Notes what a reply shows. The content of an item is noted as it passes, if it is not at hand.
    /// - Parameter asked: the moment when the client asked.
    func note(_ reply: inout Reply, to context: RequestContext, asked: UInt64, from cache: CacheStore) async {
        let (head, includes, url, viewer) = (reply.head, context.trace.includes, context.request.url, context.viewer)
        let isItem = context.plan.showsItem && head.status == 200 && MediaType.isJSON(head.fields)
        let source: ShownState.Source = context.trace.cacheStatus?.hit == true ? .cache : .upstream
        let state = { @Sendable [now] (content: [UInt8]?) in
            ShownState(head, content: content, includes: includes, source: source, shownAt: now())
        }
        var content: [UInt8]?
        switch reply.body {
        case .stream(let source, _?) where isItem:
            if let whole = (source as? BodyPipe)?.takeWhole(upTo: ShownState.contentLimit) {
                reply.body = .bytes(whole)
                content = Array(whole.readableBytesView)
            }
        case .bytes, .file:
            guard isItem, let whole = await reply.body.collect(upTo: ShownState.contentLimit, from: cache) else { break }
            content = Array(whole.readableBytesView)
        case .stream, .none: break
        }
        if let shown = state(content) { note(shown, at: url, to: viewer, asked: asked) }
        guard isItem, case .stream(let source, let length) = reply.body, length ?? 0 <= Int64(ShownState.contentLimit) else { return }
        let body = ShownBody(source, length: length) { [self] content in
            guard let shown = state(content) else { return }
            note(shown, at: url, to: viewer, asked: asked)
        }
        reply.body = .stream(body, length: length)
    }
}

// MARK: - Over a restart

/// A file of notes, one JSON value a line. It may be lost, and must never be older than what its clients were told: the end of a write is in
/// it before the client gets the answer, and everything in the order in which it happened. After the machine itself has stopped without
/// notice that is not known, and the file does not count.
final class SightLog: Sendable {
    /// Bytes beyond which the file is written anew.
    private static let limit = Int.mib(4)
    /// How long the note of something shown may wait to be written.
    private static let delay = DispatchTimeInterval.milliseconds(200)

    private struct State {
        var file: FileHandle?
        var waiting: [UInt8] = []
        var isDue = false
        var length = 0
        /// The length after it was written anew.
        var least = 0
        /// What was appended since `shorten` began to write the file anew; nil while it does not.
        var late: [UInt8]?
    }

    private let path: String
    private let index: IndexSeal
    private var new: String { path + ".new" }
    private let queue = DispatchQueue(label: "rockpool.sight")
    private let state = Mutex(State())

    /// - Parameters:
    ///   - directory: that of the cache.
    ///   - index: seals the secrets of URLs.
    init(in directory: String, index: IndexSeal) { (path, self.index) = ("\(directory)/sight.log", index) }

    private func line(of record: Sight.Record) -> [UInt8] { record.at(index.sealed).json.serialized() + [UInt8(ascii: "\n")] }

    /// Returns what the last run has left; nothing if it is not known to be whole.
    func read() -> [Sight.Record] {
        guard let data = FileManager.default.contents(atPath: path) else { return [] }
        var lines = data.split(separator: UInt8(ascii: "\n"))
        guard !lines.isEmpty, let head = try? JSONValue.parse(Array(lines.removeFirst())),
            head == Self.head(isWhole: true) || head == Self.head(isWhole: false)
        else { return [] }
        // The last line may be torn.
        return lines.compactMap { (try? JSONValue.parse(Array($0))).flatMap { Sight.Record(json: $0)?.at(index.opened) } }
    }

    /// Writes the file anew at a start, and keeps it open.
    func begin(with records: [Sight.Record]) {
        state.withLock { state in
            state.waiting = []
            take(replacement(of: records, isWhole: false), with: [], in: &state)
        }
    }

    /// Begins to write the file anew, because it has become long. Until that is done, notes go to the old file and to the new one.
    /// - Parameter sight: everything that is known, with the last note that was appended.
    func shorten(to sight: Sight) {
        let isFirst = state.withLock { state in
            guard state.late == nil, state.file != nil else { return false }
            Self.write(&state)
            state.late = []
            return true
        }
        guard isFirst else { return }
        queue.async { [self] in
            let file = replacement(of: sight.records, isWhole: false)
            state.withLock { state in
                Self.write(&state)
                let late = state.late ?? []
                state.late = nil
                // The old file has met an error: what is in the new one is not known to be whole.
                guard state.file != nil else { return }
                take(file, with: late, in: &state)
            }
        }
    }

    /// Writes the file anew at a clean stop: nothing is under way any more.
    func end(with records: [Sight.Record]) {
        queue.sync {}
        state.withLock { state in
            state.waiting = []
            take(replacement(of: records, isWhole: true), with: [], in: &state)
            try? state.file?.synchronize()
            state.file = nil
        }
    }

    /// Appends a note. That of a write is in the file when this returns.
    /// - Returns: true if `shorten` should be called, because the file has become long.
    func append(_ record: Sight.Record) -> Bool {
        state.withLock { state in
            guard state.file != nil else { return false }
            state.waiting += line(of: record)
            if case .written = record {
                Self.write(&state)
            } else if !state.isDue {
                state.isDue = true
                queue.asyncAfter(deadline: .now() + Self.delay) { [self] in
                    self.state.withLock {
                        $0.isDue = false
                        Self.write(&$0)
                    }
                }
            }
            return state.late == nil && state.length > max(Self.limit, state.least * 2)
        }
    }

    private static func write(_ state: inout State) {
        guard let file = state.file, !state.waiting.isEmpty else { return }
        do { try file.write(contentsOf: state.waiting) } catch {
            // What follows would not be in order: without it nothing counts.
            state.file = nil
            try? file.truncate(atOffset: 0)
        }
        state.length += state.waiting.count
        state.late? += state.waiting
        state.waiting = []
    }

    /// Writes records to a new file beside the file. Returns nil if it cannot be written.
    private func replacement(of records: [Sight.Record], isWhole: Bool) -> FileHandle? {
        var bytes = Self.head(isWhole: isWhole).serialized() + [UInt8(ascii: "\n")]
        for record in records { bytes += line(of: record) }
        try? FileManager.default.removeItem(atPath: new)
        guard FileManager.default.createFile(atPath: new, contents: Data(bytes), attributes: [.posixPermissions: 0o600]),
            let file = FileHandle(forWritingAtPath: new), (try? file.seekToEnd()) != nil
        else { return nil }
        return file
    }

    /// Puts a new file in the place of the old one, with what came since it was made.
    private func take(_ file: FileHandle?, with late: [UInt8], in state: inout State) {
        guard let file, (try? file.write(contentsOf: late)) != nil, unsafe rename(new, path) == 0 else {
            // An older file would not be in order.
            try? FileManager.default.removeItem(atPath: path)
            state.file = nil
            return
        }
        state.file = file
        state.length = Int((try? file.offset()) ?? 0)
        state.least = state.length
    }

    /// The first line. A file that was not ended counts for as long as the machine runs.
    private static func head(isWhole: Bool) -> JSONValue {
        let boot = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
        return ["rockpool sight 1", .string(isWhole ? "" : boot)]
    }
}
