// Which requests share one fetch, and which of them its answer may serve (RFC 9111 §4, last paragraph; security.md §3, *Collapsing*).
import HTTPTypes

/// Request collapsing. One request leads: it is sent. Others for the same key follow: they wait for its head, and share it or are
/// released to go on their own.
package enum Collapsing {
    /// Why a request neither leads nor follows, or only the latter.
    package enum Obstacle: String, CaseIterable, Sendable, Codable {
        /// Only GET: the answer to a HEAD has no body to share, and one to a GET is no reason for a HEAD to wait.
        case method
        case requestBody = "request-body"
        /// The answer may be a part.
        case range
        /// The answer may be a 304 or 412, meant for its sender alone.
        case condition
        /// `no-store`; to follow also whatever asks for more than any fresh response.
        case requestDirective = "request-directive"
        /// The request carries a field that steers frameworks but is no part of the key.
        case overrideHeader = "override-header"
        /// It opens a stream, which has no end to wait for and is not stored.
        case eventStream = "event-stream"
    }

    /// What keeps `request` from leading; nil when it may.
    /// - Parameter wishes: Its own directives, as `CacheControl(request:)` reads them.
    package static func obstacleToLeading(_ request: RequestHead, hasBody: Bool, wishes: CacheControl) -> Obstacle? {
        if request.method != .get { return .method }
        if hasBody { return .requestBody }
        if wishes.noStore { return .requestDirective }
        for field in request.fields {
            switch field.name.canonicalName {
            case "range": return .range
            case "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range": return .condition
            case "accept" where field.value.lowercased().contains("text/event-stream"): return .eventStream
            default: if RequestOverride.isUnkeyed(field.name) { return .overrideHeader }
            }
        }
        return nil
    }

    /// Whether a request for a range reads along a fetch of the whole that is under way, when the range begins here.
    /// - Parameters:
    ///   - received: Bytes of the body that have come.
    ///   - elapsed: How long they took.
    package static func isWorthAwaiting(_ start: Int64, received: Int64, in elapsed: TimeSpan) -> Bool {
        let missing = start - received
        let soon = received.multipliedClamped(by: longestAwaited.milliseconds) / max(1, elapsed.milliseconds)
        return missing <= max(alwaysAwaited, soon)
    }

    /// A range that will have begun by then is awaited; one further off is asked for by itself.
    private static let longestAwaited = TimeSpan.seconds(1)
    /// Bytes: what a request of its own would cost anyway.
    private static let alwaysAwaited: Int64 = 65_536

    /// What keeps `request` from following; nil when it may. A request that insists on the origin may well lead: what it fetches
    /// is newer than anything.
    package static func obstacleToFollowing(_ request: RequestHead, hasBody: Bool, wishes: CacheControl) -> Obstacle? {
        if let obstacle = obstacleToLeading(request, hasBody: hasBody, wishes: wishes) { return obstacle }
        let insists = wishes.noCache != .absent || wishes.maxAge != nil || wishes.minFresh != nil || wishes.onlyIfCached
        return insists ? .requestDirective : nil
    }
}

extension Collapsing {
    /// What has become of the leader's fetch, once its head is there.
    package enum Arrival: Hashable, Sendable {
        /// No head came.
        case failed
        /// It is relayed and not kept.
        case notStored
        /// It is being stored: as what, selected by the leader's fields, and for whom.
        case stored(StoredResponse, StoragePartition)
    }

    /// What a follower does.
    package enum Outcome: Hashable, Sendable {
        /// Read along.
        case share
        /// Go forward on its own; after a failure one of those released leads again.
        case release(Release)
    }

    /// Why a follower cannot share.
    package enum Release: String, CaseIterable, Sendable, Codable {
        /// It is another's, or private without anybody known to be its owner.
        case isPrivate = "private"
        case vary
        case notStored = "not-stored"
        /// It is stored, but no response to reuse without validation, which is what sharing would be (RFC 9111 §4).
        case mustValidate = "must-validate"
        case failed

        /// Whether the next answer is likely to be no better, so that `UncollapsibleKeys` should know the key.
        package var isLasting: Bool {
            switch self {
            case .isPrivate, .notStored, .mustValidate: true
            case .vary, .failed: false
            }
        }
    }

    /// Decides for one follower.
    /// - Parameter identity: The follower's, as `StoragePartition.own` takes it.
    package static func outcome(of arrival: Arrival, for follower: RequestHead, identity: String?, now: Timestamp) -> Outcome {
        switch arrival {
        case .failed: return .release(.failed)
        case .notStored: return .release(.notStored)
        case .stored(let response, let partition):
            let isReadable = partition == .shared || (partition != .anonymous && partition == .own(identity))
            guard isReadable else { return .release(.isPrivate) }
            guard Vary.matches(stored: response, request: follower) else { return .release(.vary) }
            // As if it had been stored before, by the letter of the RFC: the policy's liberties are for an upstream that is away.
            switch Reuse.decide(candidates: [response], request: follower, context: ReuseContext(), now: now) {
            case .fresh, .stale: return .share
            case .validate, .complete, .none, .gatewayTimeout: return .release(.mustValidate)
            }
        }
    }
}
