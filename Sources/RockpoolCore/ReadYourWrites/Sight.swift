// What clients have been shown, and what they have written since (docs/outbox.md#sight): the state on which a write builds.
import HTTPTypes

/// What viewers have in front of them. Moments are counted, not read from a clock.
package struct Sight: Sendable {
    /// What a write of a viewer builds on.
    package enum Ground: Hashable, Sendable {
        /// A state that the viewer was shown after its last write there.
        case shown(ShownState)
        /// The state that its own write has made; nil where the answer named no strong tag.
        case written(version: String?)
        case unknown

        /// The version by which the write is conditional; nil without one.
        package var condition: String? {
            switch self {
            case .shown(let state): state.condition
            case .written(let version): version
            case .unknown: nil
            }
        }
    }

    fileprivate struct Place: Hashable {
        /// `Viewer.partition`.
        let partition: String
        let url: String
    }

    /// The states that are kept of one place.
    private static let stateLimit = 8
    /// Places of one generation, of two that are kept.
    private static let limit = 10_000
    /// Bytes of contents in one generation.
    private static let byteLimit = Int.mib(8)

    private var young: [Place: [Shown]] = [:]
    private var old: [Place: [Shown]] = [:]
    private var youngBytes = 0
    private var written: [Place: Writes] = [:]
    private var writtenBefore: [Place: Writes] = [:]
    /// The end of the last write that is forgotten: what was shown before it may be older than that write.
    private var forgotten: UInt64 = 0
    /// The number of changes: while it stays the same, another note of a state that was noted last changes nothing.
    package private(set) var changes: UInt64 = 0
    /// The end of the last write.
    private var lastWrite: UInt64 = 0

    package init() {}

    /// Notes what a viewer is shown.
    /// - Parameter asked: the moment when the viewer asked.
    package mutating func note(_ state: ShownState, at url: String, to viewer: Viewer, asked: UInt64) {
        let place = Place(partition: viewer.partition, url: url)
        var states = young[place] ?? old[place] ?? []
        let known = states.lastIndex { $0.state.isSame(as: state) }
        var shown = known.map { states.remove(at: $0) } ?? Shown(state: state)
        let before = shown.asked
        if let earlier = shown.sighting(by: viewer.program), earlier.asked < lastWrite {
            // What it was shown again after its own write counts again.
            let touched = touched(Self.path(url), by: viewer, program: viewer.program)
            if earlier.asked <= touched, asked > touched { changes += 1 }
        }
        if shown.note(state, to: viewer.program, asked: asked) { changes += 1 }
        // Of what is asked for at once, the later note is the later sight.
        let index = asked < before ? known ?? states.endIndex : states.firstIndex { $0.asked > asked } ?? states.endIndex
        if known == nil || index != known { changes += 1 }
        states.insert(shown, at: index)
        if states.count > Self.stateLimit { states.remove(at: Self.leastNeeded(of: states)) }
        keep(states, of: place)
    }

    /// The first state that no program was shown last; the first one if there is none.
    private static func leastNeeded(of states: [Shown]) -> Int {
        var last: [Viewer.Program: (asked: UInt64, index: Int)] = [:]
        for (index, state) in states.enumerated() {
            for case (let program?, _, let asked) in state.sightings where asked >= last[program]?.asked ?? 0 {
                last[program] = (asked, index)
            }
        }
        let needed = Set(last.values.map(\.index))
        return states.indices.first { !needed.contains($0) } ?? 0
    }

    /// Keeps the states of a place among the young ones. What is not noted again for two generations is forgotten.
    private mutating func keep(_ states: [Shown], of place: Place) {
        let bytes = { (states: [Shown]) in states.reduce(0) { $0 + ($1.state.content?.count ?? 0) } }
        var known = young[place]
        let more = bytes(states) - bytes(known ?? [])
        if known == nil && young.count >= Self.limit || youngBytes + more > Self.byteLimit {
            (old, young, youngBytes, known) = (young, [:], 0, nil)
            changes += 1
        }
        youngBytes += bytes(states) - bytes(known ?? [])
        young[place] = states
    }

    /// Notes that a viewer's write was answered, or that its effect is not known.
    /// - Parameter version: the strong entity tag of the answer; nil if it named none.
    package mutating func note(writeTo url: String, by viewer: Viewer, version: String?, at moment: UInt64) {
        changes += 1
        lastWrite = max(lastWrite, moment)
        var path = Self.path(url)
        mark(path, of: viewer.partition) { $0.note(by: viewer.program, endedAt: moment, version: version) }
        while let above = Self.above(path) {
            path = above
            mark(path, of: viewer.partition) { $0.note(by: viewer.program, endedBelowAt: moment) }
        }
    }

    private mutating func mark(_ path: Substring, of partition: String, _ change: (inout Writes) -> Void) {
        let place = Place(partition: partition, url: String(path))
        var writes = written[place] ?? writtenBefore[place] ?? Writes()
        change(&writes)
        if written[place] == nil, written.count >= Self.limit {
            forgotten = max(forgotten, writtenBefore.values.reduce(0) { max($0, $1.last) })
            (writtenBefore, written) = (written, [:])
        }
        written[place] = writes
    }

    /// Returns what a write of a viewer builds on: what it was shown last, or what its own write has made. Unknown if it was shown nothing, or
    /// if a write of its own at, above or below the place has changed it in a way that is not known.
    ///
    /// A program that was shown nothing there, and has written nothing there, counts as any of its identity. Where a viewer was shown several
    /// states (in the tabs of a browser), a whole representation was made from the one from which it differs least. One that is equal to an
    /// earlier state is no copy of it: somebody has undone a change.
    /// - Parameter replacement: the whole representation that the write puts there; nil for any other write.
    package func ground(of url: String, for viewer: Viewer, replacement: JSONValue? = nil) -> Ground {
        let path = Self.path(url)
        let (all, marks) = (states(at: url, of: viewer), writes(at: path, of: viewer))
        let program = knows(viewer.program, all, marks) ? viewer.program : nil
        let own = marks.mark(of: program)
        let touched = touched(path, by: viewer, program: program)
        let states = all.compactMap { $0.sighting(by: program) }.filter { $0.asked > touched && $0.state.isKnown }
            .enumerated().sorted { ($0.element.asked, $0.offset) < ($1.element.asked, $1.offset) }.map(\.element.state)
        guard let last = states.last else { return own.ended > 0 && own.ended == touched ? .written(version: own.version) : .unknown }
        guard states.count > 1, let replacement, let least = last.distance(to: replacement) else { return .shown(last) }
        var nearest = (state: last, distance: least)
        for state in states.dropLast().reversed() {
            guard let distance = state.distance(to: replacement), distance > 0, distance < nearest.distance else { continue }
            nearest = (state, distance)
        }
        return .shown(nearest.state)
    }

    /// Returns which waiting writes of its identity a viewer has in front of it at a place; nil for all: where nothing tells programs apart.
    package func reach(of url: String, for viewer: Viewer) -> Reach? {
        let (all, marks) = (states(at: url, of: viewer), writes(at: Self.path(url), of: viewer))
        guard let program = viewer.program, knows(program, all, marks) else { return nil }
        return Reach(program: program, until: all.compactMap { $0.sighting(by: program)?.state.until }.max() ?? 0)
    }

    /// The end of the last write that counts as a program's own and may have changed what is at a path.
    private func touched(_ path: Substring, by viewer: Viewer, program: Viewer.Program?) -> UInt64 {
        var touched = max(writes(at: path, of: viewer).mark(of: program).last, forgotten)
        var next = path
        while let above = Self.above(next) {
            next = above
            touched = max(touched, writes(at: above, of: viewer).mark(of: program).ended)
        }
        return touched
    }

    private func knows(_ program: Viewer.Program?, _ states: [Shown], _ writes: Writes) -> Bool {
        guard let program else { return false }
        return writes.isKnown(program) || states.contains { $0.sighting(by: program) != nil }
    }

    private func states(at url: String, of viewer: Viewer) -> [Shown] {
        let place = Place(partition: viewer.partition, url: url)
        return young[place] ?? old[place] ?? []
    }

    private func writes(at path: Substring, of viewer: Viewer) -> Writes {
        let place = Place(partition: viewer.partition, url: String(path))
        return written[place] ?? writtenBefore[place] ?? Writes()
    }

    /// The URL without its query and the slash at its end.
    private static func path(_ url: String) -> Substring {
        let path = url.prefix { $0 != "?" }
        return path.hasSuffix("/") ? path.dropLast() : path
    }

    /// The URL of the folder; nil above the root of an origin.
    private static func above(_ path: Substring) -> Substring? {
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex, path[path.index(before: slash)] != "/" else { return nil }
        return path[..<slash]
    }
}

/// The waiting writes that a program has in front of it: its own, and those that it was shown.
package struct Reach: Hashable, Sendable {
    package let program: Viewer.Program
    /// The sequence of the last write in what it was shown.
    package let until: Int64

    package init(program: Viewer.Program, until: Int64) { (self.program, self.until) = (program, until) }

    /// - Parameter writer: the program that wrote; nil where it is not known.
    package func contains(_ sequence: Int64, by writer: Viewer.Program?) -> Bool {
        writer == nil || writer == program || sequence <= until
    }
}

/// A state of a place, and the programs of one identity that were shown it.
private struct Shown {
    /// The programs that are kept of one state; of the others it is known that one of the identity was shown it.
    private static let programLimit = 8

    private(set) var state: ShownState
    /// When the last of its readers asked.
    private(set) var asked: UInt64 = 0
    private var programs: [(program: Viewer.Program, asked: UInt64, until: Int64)] = []

    init(state: ShownState) { self.state = state }

    /// Notes that a program is shown it.
    /// - Returns: true if it was not shown it before.
    mutating func note(_ state: ShownState, to program: Viewer.Program?, asked: UInt64) -> Bool {
        self.state = self.state.with(state)
        self.asked = max(self.asked, asked)
        guard let program else { return false }
        if let index = programs.firstIndex(where: { $0.program == program }) {
            let isNew = state.until > programs[index].until
            (programs[index].asked, programs[index].until) = (max(programs[index].asked, asked), max(programs[index].until, state.until))
            return isNew
        }
        if programs.count >= Self.programLimit, let first = programs.indices.min(by: { programs[$0].asked < programs[$1].asked }) {
            programs.remove(at: first)
        }
        programs.append((program, asked, state.until))
        return true
    }

    /// The state as a program was shown it, and when it asked; nil program: as anyone was. Nil if it was not.
    func sighting(by program: Viewer.Program?) -> (state: ShownState, asked: UInt64)? {
        guard let program else { return (state, asked) }
        return programs.first { $0.program == program }.map { (state.until($0.until), $0.asked) }
    }

    /// What each program was shown; with nil where none is known.
    var sightings: [(program: Viewer.Program?, state: ShownState, asked: UInt64)] {
        programs.isEmpty ? [(nil, state, asked)] : programs.map { ($0.program, state.until($0.until), $0.asked) }
    }
}

/// The last writes of an identity at a path.
private struct Writes {
    /// The last ones of one program.
    struct Mark {
        /// The end of the last one to the path itself, and the strong tag of its answer.
        var ended: UInt64 = 0
        var version: String?
        /// The end of the last one to a path below.
        var endedBelow: UInt64 = 0

        var last: UInt64 { max(ended, endedBelow) }

        func later(_ other: Mark) -> Mark {
            let (first, second) = other.ended > ended ? (other, self) : (self, other)
            return Mark(ended: first.ended, version: first.version, endedBelow: max(first.endedBelow, second.endedBelow))
        }
    }

    /// The programs that are kept; the writes of another count as everyone's.
    private static let programLimit = 8

    /// Those of programs that are not known, or not kept any more.
    private(set) var anyone = Mark()
    private(set) var programs: [(program: Viewer.Program, mark: Mark)] = []

    var last: UInt64 { mark(of: nil).last }

    mutating func note(by program: Viewer.Program?, endedAt moment: UInt64, version: String?) {
        change(program) { ($0.ended, $0.version) = (moment, version) }
    }

    mutating func note(by program: Viewer.Program?, endedBelowAt moment: UInt64) { change(program) { $0.endedBelow = moment } }

    private mutating func change(_ program: Viewer.Program?, _ work: (inout Mark) -> Void) {
        guard let program else { return work(&anyone) }
        if let index = programs.firstIndex(where: { $0.program == program }) { return work(&programs[index].mark) }
        if programs.count >= Self.programLimit, let first = programs.indices.min(by: { programs[$0].mark.last < programs[$1].mark.last }) {
            anyone = anyone.later(programs.remove(at: first).mark)
        }
        var mark = Mark()
        work(&mark)
        programs.append((program, mark))
    }

    /// The writes that count for a program as its own; all for nil.
    func mark(of program: Viewer.Program?) -> Mark {
        programs.reduce(anyone) { program == nil || $1.program == program ? $0.later($1.mark) : $0 }
    }

    /// True if the program has written to the path itself.
    func isKnown(_ program: Viewer.Program) -> Bool { programs.contains { $0.program == program && $0.mark.ended > 0 } }
}

/// One state of a place, as a reply showed it.
package struct ShownState: Hashable, Sendable {
    /// The tag that the upstream gave it; nil if it gave none.
    package let version: EntityTag?
    /// The representation, without its content coding; nil if it is not kept.
    package private(set) var content: [UInt8]?
    /// The media type of the content.
    package private(set) var contentType: String?
    /// Own writes that have ended by then are part of it; nil if that is not known.
    package private(set) var includes: Tick?
    /// The sequence of the last waiting write that was folded into it; 0 without one.
    package private(set) var until: Int64
    /// Where the reply came from; nil if that is not known.
    package private(set) var source: Source?
    /// When it was shown last; nil if that is not known.
    package private(set) var shownAt: Timestamp?

    /// Where a reply came from.
    package enum Source: String, Hashable, Sendable {
        case upstream, cache
    }

    package init(
        version: EntityTag?, content: [UInt8]? = nil, contentType: String? = nil, includes: Tick? = nil, until: Int64 = 0,
        source: Source? = nil, shownAt: Timestamp? = nil
    ) {
        (self.version, self.content, self.contentType, self.includes) = (version, content, contentType, includes)
        (self.until, self.source, self.shownAt) = (until, source, shownAt)
    }

    /// The version by which a write can be conditional (RFC 9110 §13.1.1).
    package var condition: String? { version.flatMap { $0.isStrong ? $0.fieldValue : nil } }

    /// True if it says something of the upstream's state.
    fileprivate var isKnown: Bool { version != nil || content != nil }

    fileprivate func isSame(as other: ShownState) -> Bool {
        if let version, let theirs = other.version { return version == theirs }
        return version == other.version && content == other.content
    }

    /// The state with what a later reply of it shows.
    fileprivate func with(_ other: ShownState) -> ShownState {
        var state = self
        (state.content, state.contentType) = (other.content ?? content, other.contentType ?? contentType)
        (state.includes, state.until) = (other.includes ?? includes, max(until, other.until))
        (state.source, state.shownAt) = (other.source ?? source, other.shownAt ?? shownAt)
        return state
    }

    fileprivate func until(_ sequence: Int64) -> ShownState {
        var state = self
        state.until = sequence
        return state
    }

    /// The state as it is shown once more.
    package func again(from source: Source, at moment: Timestamp) -> ShownState {
        var state = self
        (state.source, state.shownAt) = (source, moment)
        return state
    }

    /// The number of values in a representation that this state has not, or has differently; nil if the content is not known.
    fileprivate func distance(to replacement: JSONValue) -> Int? {
        guard let content, let value = try? JSONValue.parse(content) else { return nil }
        return replacement.distance(from: value)
    }
}

extension JSONValue {
    /// The number of values in it that are not at the same place in another.
    fileprivate func distance(from other: JSONValue?) -> Int {
        guard let other else { return 1 }
        if let mine = object, let theirs = other.object { return mine.reduce(0) { $0 + $1.value.distance(from: theirs[$1.name]) } }
        return self == other ? 0 : 1
    }
}

extension ShownState {
    /// The largest content that is kept.
    package static let contentLimit = Int.kib(64)

    /// What an answer shows of a place that its client may change; nil if it shows no state. Of a reply with queued writes the version is the
    /// upstream's, below them, and the content is not known.
    /// - Parameter content: the whole body; nil where it is not at hand.
    package init?(
        _ answer: ResponseHead, content: @autoclosure () -> [UInt8]?, includes: Tick?, source: Source? = nil,
        shownAt: Timestamp? = nil
    ) {
        // One that lacks an own write shows an older state than its client has made.
        guard [200, 206, 304].contains(answer.status), !answer.fields.contains(.rockpoolDirty) else { return nil }
        // A coded representation has a tag of its own, which its server may not take in a condition (RFC 9110 §8.8.3.3).
        let isCoded = answer.fields.contains(.contentEncoding)
        let tag = isCoded ? nil : answer.fields.value(of: "etag").flatMap { EntityTag($0) }
        let local = tag.flatMap { LocalETag($0) }
        let isWhole = answer.status == 200 && !isCoded && local == nil && !CacheControl(answer.fields).noStore
        let bytes = isWhole ? content().flatMap { $0.count <= Self.contentLimit ? $0 : nil } : nil
        let version = local == nil ? tag : local?.base
        guard version != nil || bytes != nil || local != nil else { return nil }
        self.init(
            version: version, content: bytes, contentType: answer.fields.value(of: "content-type"), includes: includes,
            until: local?.sequence ?? 0, source: source, shownAt: shownAt)
    }

    /// What a stored response shows; nil if it lacks an own write, which its reply says (`Rockpool-Dirty`).
    /// - Parameter content: the whole body; nil where it is not at hand.
    package init?(_ stored: StoredResponse, content: @autoclosure () -> [UInt8]?) {
        guard !stored.isDirty else { return nil }
        self.init(stored.head, content: content(), includes: stored.includesWritesUntil)
    }
}

// MARK: - Over a restart

extension Sight {
    /// A note, as it is kept over a restart: contents are not part of it.
    package enum Record: Hashable, Sendable {
        case shown(ShownState, url: String, viewer: Viewer, asked: UInt64)
        case written(url: String, viewer: Viewer, version: String?, at: UInt64)
    }

    /// Notes what a record says.
    package mutating func note(_ record: Record) {
        switch record {
        case .shown(let state, let url, let viewer, let asked): note(state, at: url, to: viewer, asked: asked)
        case .written(let url, let viewer, let version, let moment): note(writeTo: url, by: viewer, version: version, at: moment)
        }
    }

    /// Everything that is known, in an order in which it can be noted again.
    package var records: [Record] {
        var records: [(moment: UInt64, record: Record)] = []
        for (place, states) in old.merging(young, uniquingKeysWith: { $1 }) {
            for shown in states {
                for (program, state, asked) in shown.sightings {
                    let viewer = Viewer(partition: place.partition, program: program)
                    records.append((asked, .shown(state, url: place.url, viewer: viewer, asked: asked)))
                }
            }
        }
        for (place, writes) in writtenBefore.merging(written, uniquingKeysWith: { $1 }) {
            let marks = [(nil, writes.anyone)] + writes.programs.map { (Optional($0.program), $0.mark) }
            for (program, mark) in marks where mark.ended > 0 {
                let viewer = Viewer(partition: place.partition, program: program)
                records.append((mark.ended, .written(url: place.url, viewer: viewer, version: mark.version, at: mark.ended)))
            }
        }
        return records.sorted { $0.moment < $1.moment }.map(\.record)
    }
}

extension Sight.Record {
    /// The same record of another spelling of its URL.
    package func at(_ spelling: (String) -> String) -> Self {
        switch self {
        case .shown(let state, let url, let viewer, let asked): .shown(state, url: spelling(url), viewer: viewer, asked: asked)
        case .written(let url, let viewer, let version, let moment):
            .written(url: spelling(url), viewer: viewer, version: version, at: moment)
        }
    }

    /// The record as a JSON value.
    package var json: JSONValue {
        switch self {
        case .shown(let state, let url, let viewer, let asked):
            let version = state.version.map { JSONValue.string($0.fieldValue) } ?? .null
            let moments = [state.includes?.number, state.shownAt?.milliseconds].map { moment -> JSONValue in
                moment.map { .number(JSONNumber($0)) } ?? .null
            }
            return .array(
                Self.head(url, viewer, asked) + [version] + moments + [
                    .number(JSONNumber(state.until)), .string(state.source?.rawValue ?? ""),
                ])
        case .written(let url, let viewer, let version, let moment):
            return .array(Self.head(url, viewer, moment) + [version.map { .string($0) } ?? .null])
        }
    }

    private static func head(_ url: String, _ viewer: Viewer, _ moment: UInt64) -> [JSONValue] {
        [
            .string(viewer.partition), viewer.program.map { .number(JSONNumber($0.number)) } ?? .null, .string(url),
            .number(JSONNumber(Int64(clamping: moment))),
        ]
    }

    /// The record that a JSON value holds; nil if it holds none.
    package init?(json: JSONValue) {
        guard let parts = json.array, parts.count == 5 || parts.count == 9, let partition = parts[0].string, let url = parts[2].string,
            let moment = parts[3].integer, moment >= 0
        else { return nil }
        let viewer = Viewer(partition: partition, program: parts[1].integer.map { Viewer.Program(number: $0) })
        guard parts.count == 9 else {
            self = .written(url: url, viewer: viewer, version: parts[4].string, at: UInt64(moment))
            return
        }
        let state = ShownState(
            version: parts[4].string.flatMap { EntityTag($0) }, includes: parts[5].integer.map { Tick(number: $0) },
            until: parts[7].integer ?? 0, source: parts[8].string.flatMap { ShownState.Source(rawValue: $0) },
            shownAt: parts[6].integer.map { Timestamp(milliseconds: $0) })
        self = .shown(state, url: url, viewer: viewer, asked: UInt64(moment))
    }
}
