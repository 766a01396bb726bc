// What clients have been shown, and what they have written since (docs/outbox.md#sight): the version on which a write builds.
import HTTPTypes

/// The versions of items as their viewers saw them last. Moments are counted, not read from a clock.
package struct Sight: Sendable {
    private struct Place: Hashable {
        let viewer: String
        let url: String
    }

    private struct Shown {
        let version: String
        /// When its reader asked.
        let asked: UInt64
    }

    private struct Written {
        let url: String
        /// The version of the answer; nil if it named none.
        let version: String?
        let ended: UInt64
    }

    /// The last writes of one viewer.
    private struct Writes {
        var known: [Written] = []
        /// The end of the last one that is forgotten: what was shown before it may be older than that write.
        var forgotten: UInt64
        var last: UInt64 { known.last?.ended ?? forgotten }
    }

    /// Of two generations of places, and of the viewers whose writes are known.
    private static let limit = 10_000
    private static let viewerLimit = 1000
    /// The last writes of one viewer.
    private static let writeLimit = 64

    private var young: [Place: Shown] = [:]
    private var old: [Place: Shown] = [:]
    private var written: [String: Writes] = [:]
    /// The last moment of a write of a viewer whose writes are forgotten.
    private var forgotten: UInt64 = 0

    package init() {}

    /// Notes what a viewer is shown.
    /// - Parameters:
    ///   - version: a strong entity tag.
    ///   - asked: the moment when the viewer asked.
    package mutating func note(shown version: String, at url: String, to viewer: String, asked: UInt64) {
        let place = Place(viewer: viewer, url: url)
        if let known = young[place] ?? old[place], known.asked > asked { return }
        if young.count >= Self.limit, young[place] == nil { (old, young) = (young, [:]) }
        young[place] = Shown(version: version, asked: asked)
    }

    /// Notes that a viewer's write was answered, or that its effect is not known.
    /// - Parameter version: the strong entity tag of the answer; nil if it named none.
    package mutating func note(writeTo url: String, by viewer: String, version: String?, at moment: UInt64) {
        if written[viewer] == nil, written.count >= Self.viewerLimit, let oldest = written.min(by: { $0.value.last < $1.value.last }) {
            forgotten = max(forgotten, oldest.value.last)
            written[oldest.key] = nil
        }
        var writes = written[viewer] ?? Writes(forgotten: forgotten)
        if writes.known.count >= Self.writeLimit { writes.forgotten = writes.known.removeFirst().ended }
        writes.known.append(Written(url: url, version: version, ended: moment))
        written[viewer] = writes
    }

    /// Returns the version that a viewer has in front of it: what it was shown last, or what its own write has made. Nil if it was shown
    /// nothing, or if a write of its own at, above or below the place has changed it in a way that is not known.
    package func version(of url: String, for viewer: String) -> String? {
        let place = Place(viewer: viewer, url: url)
        let shown = young[place] ?? old[place]
        let writes = written[viewer] ?? Writes(forgotten: forgotten)
        guard let later = writes.known.last(where: { $0.ended > shown?.asked ?? 0 && Self.touches($0.url, url) }) else {
            return shown.flatMap { $0.asked > writes.forgotten ? $0.version : nil }
        }
        return Self.path(later.url) == Self.path(url) ? later.version : nil
    }

    /// True if one of the paths is the other, or lies above it.
    private static func touches(_ one: String, _ other: String) -> Bool {
        let (one, other) = (path(one), path(other))
        let (short, long) = one.utf8.count <= other.utf8.count ? (one, other) : (other, one)
        guard long.hasPrefix(short) else { return false }
        return long.utf8.count == short.utf8.count || short.hasSuffix("/")
            || long.utf8.dropFirst(short.utf8.count).first == UInt8(ascii: "/")
    }

    private static func path(_ url: String) -> Substring { url.prefix { $0 != "?" } }
}

/// The version of an item in a reply, and who is shown it.
package final class ShownVersion: Sendable {
    package let viewer: String?
    /// A strong entity tag.
    package let version: String

    /// Nil if the answer names no version by which a write can be conditional. Of a reply with queued writes it is the upstream's, below
    /// them.
    package init?(_ answer: ResponseHead, to viewer: String?) {
        guard [200, 206, 304].contains(answer.status), let tag = answer.fields[.eTag].flatMap({ EntityTag($0) }) else { return nil }
        let upstreams: EntityTag? = if let local = LocalETag(tag) { local.base } else { tag }
        guard let upstreams, upstreams.isStrong else { return nil }
        (self.viewer, version) = (viewer, upstreams.fieldValue)
    }
}
