// Notes what replies show their clients (docs/outbox.md#sight).
import HTTPTypes
import RockpoolCore
import Synchronization

/// The `Sight` of one server.
final class ClientSight: Sendable {
    private let state = Mutex(Sight())
    private let moments = Atomic<UInt64>(0)

    /// Counts a moment: those of later calls are greater.
    func moment() -> UInt64 { moments.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Notes what a reply shows.
    func note(_ shown: ShownVersion, at url: String, asked: UInt64) {
        state.withLock { $0.note(shown: shown.version, at: url, to: shown.viewer ?? "", asked: asked) }
    }

    /// Notes the end of a write.
    func note(_ write: AnsweredWrite, by viewer: String?) {
        let tag = write.answer.fields[.eTag].flatMap { EntityTag($0) }
        let version = tag.flatMap { $0.isStrong && LocalETag($0) == nil ? $0.fieldValue : nil }
        let moment = moment()
        state.withLock { $0.note(writeTo: write.request.url, by: viewer ?? "", version: version, at: moment) }
    }

    /// The version that a viewer has in front of it; nil if that is not known.
    func version(of url: String, for viewer: String?) -> String? { state.withLock { $0.version(of: url, for: viewer ?? "") } }
}

extension RoutePlan {
    /// True for an item of a declared resource whose versions are entity tags.
    var hasVersionedItem: Bool { entity?.isItem == true && entity?.resource?.version == "etag" }
}
