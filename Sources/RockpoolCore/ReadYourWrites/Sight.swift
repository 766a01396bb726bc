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

    private struct Place: Hashable {
        let viewer: String
        let url: String
    }

    private struct Shown {
        var state: ShownState
        /// When its reader asked.
        var asked: UInt64
    }

    /// The last writes of a viewer at a path.
    private struct Writes {
        /// The end of the last one to the path itself, and the strong tag of its answer.
        var ended: UInt64 = 0
        var version: String?
        /// The end of the last one to a path below.
        var endedBelow: UInt64 = 0

        var last: UInt64 { max(ended, endedBelow) }
    }

    /// The states that are kept of one place.
    private static let stateLimit = 4
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

    package init() {}

    /// Notes what a viewer is shown.
    /// - Parameter asked: the moment when the viewer asked.
    package mutating func note(_ state: ShownState, at url: String, to viewer: String, asked: UInt64) {
        let place = Place(viewer: viewer, url: url)
        var states = young[place] ?? old[place] ?? []
        if let index = states.lastIndex(where: { $0.state.isSame(as: state) }) {
            let known = states.remove(at: index)
            // Of what is asked for at once, the later note is the later sight.
            let isLast = !states[index...].contains { $0.asked > asked }
            if isLast, index < states.endIndex { changes += 1 }
            let again = Shown(state: known.state.with(state), asked: isLast ? max(known.asked, asked) : known.asked)
            states.insert(again, at: isLast ? states.endIndex : index)
        } else {
            changes += 1
            let index = states.firstIndex { $0.asked > asked } ?? states.endIndex
            states.insert(Shown(state: state, asked: asked), at: index)
            if states.count > Self.stateLimit { states.removeFirst() }
        }
        keep(states, of: place)
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
    package mutating func note(writeTo url: String, by viewer: String, version: String?, at moment: UInt64) {
        changes += 1
        var path = Self.path(url)
        mark(path, of: viewer) { ($0.ended, $0.version) = (moment, version) }
        while let above = Self.above(path) {
            path = above
            mark(path, of: viewer) { $0.endedBelow = moment }
        }
    }

    private mutating func mark(_ path: Substring, of viewer: String, _ change: (inout Writes) -> Void) {
        let place = Place(viewer: viewer, url: String(path))
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
    /// Programs of one credential, and the tabs of one browser, are one viewer. Where it was shown several states, a whole representation was
    /// made from the one from which it differs least. One that is equal to an earlier state is no copy of it: somebody has undone a change.
    /// - Parameter replacement: the whole representation that the write puts there; nil for any other write.
    package func ground(of url: String, for viewer: String, replacement: JSONValue? = nil) -> Ground {
        let path = Self.path(url)
        let own = writes(at: path, of: viewer)
        var touched = max(own.last, forgotten)
        var next = path
        while let above = Self.above(next) {
            next = above
            touched = max(touched, writes(at: above, of: viewer).ended)
        }
        let place = Place(viewer: viewer, url: url)
        let states = (young[place] ?? old[place] ?? []).filter { $0.asked > touched }.map(\.state)
        guard let last = states.last else { return own.ended > 0 && own.ended == touched ? .written(version: own.version) : .unknown }
        guard states.count > 1, let replacement, let least = last.distance(to: replacement) else { return .shown(last) }
        var nearest = (state: last, distance: least)
        for state in states.dropLast().reversed() {
            guard let distance = state.distance(to: replacement), distance > 0, distance < nearest.distance else { continue }
            nearest = (state, distance)
        }
        return .shown(nearest.state)
    }

    private func writes(at path: Substring, of viewer: String) -> Writes {
        let place = Place(viewer: viewer, url: String(path))
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

/// One state of a place, as a reply showed it.
package struct ShownState: Hashable, Sendable {
    /// The tag that the upstream gave it; nil if it gave none.
    package let version: EntityTag?
    /// The representation, without its content coding; nil if it is not kept.
    package let content: [UInt8]?
    /// The media type of the content.
    package let contentType: String?
    /// The time until which own writes are part of it; nil if that is not known.
    package let fetchedAt: Timestamp?

    package init(version: EntityTag?, content: [UInt8]? = nil, contentType: String? = nil, fetchedAt: Timestamp? = nil) {
        (self.version, self.content, self.contentType, self.fetchedAt) = (version, content, contentType, fetchedAt)
    }

    /// The version by which a write can be conditional (RFC 9110 §13.1.1).
    package var condition: String? { version.flatMap { $0.isStrong ? $0.fieldValue : nil } }

    fileprivate func isSame(as other: ShownState) -> Bool {
        if let version, let theirs = other.version { return version == theirs }
        return version == other.version && content == other.content
    }

    /// The state with what a later reply of it shows.
    fileprivate func with(_ other: ShownState) -> ShownState {
        ShownState(
            version: version, content: other.content ?? content, contentType: other.contentType ?? contentType,
            fetchedAt: other.fetchedAt ?? fetchedAt)
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
    package static let contentLimit = 65_536

    /// What an answer shows of a place that its client may change; nil if it shows no state. Of a reply with queued writes the version is the
    /// upstream's, below them, and the content is not known.
    /// - Parameter content: the whole body; nil where it is not at hand.
    package init?(_ answer: ResponseHead, content: @autoclosure () -> [UInt8]?, fetchedAt: Timestamp?) {
        // One that lacks an own write shows an older state than its client has made.
        guard [200, 206, 304].contains(answer.status), !answer.fields.contains(.rockpoolDirty) else { return nil }
        // A coded representation has a tag of its own, which its server may not take in a condition (RFC 9110 §8.8.3.3).
        let isCoded = answer.fields.contains(.contentEncoding)
        let tag = isCoded ? nil : answer.fields[.eTag].flatMap { EntityTag($0) }
        let local = tag.flatMap { LocalETag($0) }
        let isWhole = answer.status == 200 && !isCoded && local == nil && !CacheControl(answer.fields).noStore
        let bytes = isWhole ? content().flatMap { $0.count <= Self.contentLimit ? $0 : nil } : nil
        let version = local == nil ? tag : local?.base
        guard version != nil || bytes != nil else { return nil }
        self.init(version: version, content: bytes, contentType: answer.fields[.contentType], fetchedAt: fetchedAt)
    }
}

// MARK: over a restart

extension Sight {
    /// The most places that are kept over a restart.
    private static let recordLimit = 5_000

    /// The versions that viewers have in front of them, as a JSON document; contents are not part of it.
    package func document() -> JSONValue {
        var records: [JSONValue] = []
        for place in [young, old].flatMap(\.keys) + Array(written.keys) where records.count < Self.recordLimit {
            let version: String?
            var fetchedAt: Timestamp?
            switch ground(of: place.url, for: place.viewer) {
            case .shown(let state): (version, fetchedAt) = (state.condition, state.fetchedAt)
            case .written(let made): version = made
            case .unknown: version = nil
            }
            guard let version else { continue }
            let moment = (fetchedAt ?? .distantPast).milliseconds
            records.append([.string(place.viewer), .string(place.url), .string(version), .number(JSONNumber(moment))])
        }
        return .array(records)
    }

    /// A sight that begins with what a document holds; anything else in it is left out.
    package init(document: JSONValue) {
        self.init()
        for record in document.array?.prefix(Self.recordLimit) ?? [] {
            guard let parts = record.array, parts.count == 4, let viewer = parts[0].string, let url = parts[1].string,
                let version = parts[2].string.flatMap({ EntityTag($0) }), case .number(let number) = parts[3],
                let moment = Int64(number.literal)
            else { continue }
            let fetchedAt = moment == Timestamp.distantPast.milliseconds ? nil : Timestamp(milliseconds: moment)
            note(ShownState(version: version, fetchedAt: fetchedAt), at: url, to: viewer, asked: 1)
        }
    }
}
