// Request collapsing: which requests share one fetch, and which of them its response may serve (RFC 9111 §4, last paragraph;
// docs/security-model.md#collapsing).
import HTTPTypes

/// Request collapsing. One request, the leader, is sent. Other requests for the same key follow: they wait for the response head, then
/// share the response or are released to be forwarded on their own.
package enum RequestCollapsing {
    /// The reason why a request cannot lead or follow, or can lead but not follow.
    package enum Obstacle: String, CaseIterable, Sendable, Codable {
        /// Only GET is collapsed: a response to HEAD has no body to share, and a HEAD need not wait for the response to a GET.
        case method
        case requestBody = "request-body"
        /// The response may be a part.
        case range
        /// The response may be a 304 or 412, which is meant for its requester alone.
        case condition
        /// `no-store`; for following also any directive stricter than "any fresh response".
        case requestDirective = "request-directive"
        /// The request carries a field that changes how frameworks respond but is not part of the key.
        case overrideHeader = "override-header"
        /// The request opens an event stream, which has no end to wait for and is not stored.
        case eventStream = "event-stream"
    }

    /// The reason why `request` cannot lead; nil when it can.
    /// - Parameter wishes: The request's directives, parsed by `CacheControl(request:)`.
    package static func obstacleToLeading(_ request: RequestHead, hasBody: Bool, wishes: CacheControl) -> Obstacle? {
        if request.method != .get { return .method }
        if hasBody { return .requestBody }
        if wishes.noStore { return .requestDirective }
        for field in request.fields {
            switch field.name.canonicalName {
            case "range": return .range
            case "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range": return .condition
            case "accept" where field.value.contains(anyCase: "text/event-stream"): return .eventStream
            default: if UnkeyedField(field.name) == .overrides { return .overrideHeader }
            }
        }
        return nil
    }

    /// True if a range request that begins at `start` should read from a running fetch of the whole instead of starting its own.
    /// - Parameters:
    ///   - received: Body bytes received so far.
    ///   - elapsed: The time in which they were received.
    package static func isWorthAwaiting(_ start: Int64, received: Int64, in elapsed: TimeSpan) -> Bool {
        let missing = start - received
        let soon = received.multipliedClamped(by: longestAwaited.milliseconds) / max(1, elapsed.milliseconds)
        return missing <= max(alwaysAwaited, soon)
    }

    /// True if a transfer should be cut before `start`, so that another one brings the bytes from there on; otherwise they are awaited.
    /// - Parameters:
    ///   - received: Body bytes received so far.
    ///   - elapsed: The time in which they were received.
    package static func isWorthCutting(before start: Int64, received: Int64, in elapsed: TimeSpan) -> Bool {
        if elapsed < rateKnownAfter, start - received <= awaitedAtFirst { return false }
        return !isWorthAwaiting(start, received: received, in: max(elapsed, rateKnownAfter))
    }

    /// Before this time the rate of a transfer says little: it begins with what the network and the origin hold ready.
    private static let rateKnownAfter = TimeSpan.milliseconds(250)
    /// Bytes: about as much as is on the way when a transfer is cut, and lost.
    private static let awaitedAtFirst: Int64 = .mib(1)

    /// A range expected to begin within this time is awaited; a later one is fetched separately.
    private static let longestAwaited = TimeSpan.seconds(1)
    /// Bytes: about the cost of a separate request.
    private static let alwaysAwaited: Int64 = .kib(64)

    /// The reason why `request` cannot follow; nil when it can. A request that requires revalidation may still lead: its response is newer
    /// than any other.
    package static func obstacleToFollowing(_ request: RequestHead, hasBody: Bool, wishes: CacheControl) -> Obstacle? {
        if let obstacle = obstacleToLeading(request, hasBody: hasBody, wishes: wishes) { return obstacle }
        let insists = wishes.noCache != .absent || wishes.maxAge != nil || wishes.minFresh != nil || wishes.onlyIfCached
        return insists ? .requestDirective : nil
    }
}

extension RequestCollapsing {
    /// The state of the leader's fetch once its head has arrived or the fetch has failed.
    package enum Arrival: Hashable, Sendable {
        /// No head was received.
        case failed
        /// The response is relayed and not stored.
        case notStored
        /// The response is being stored: the stored form, selected by the leader's fields, and its partition.
        case stored(StoredResponse, StoragePartition)
    }

    /// The action of a follower.
    package enum Outcome: Hashable, Sendable {
        /// Read the leader's response as it arrives.
        case share
        /// Forward on its own; after a failure one of the released requests leads again.
        case release(Release)
    }

    /// The reason why a follower cannot share.
    package enum Release: String, CaseIterable, Sendable, Codable {
        /// The response belongs to another identity, or is private without a known owner.
        case isPrivate = "private"
        case vary
        case notStored = "not-stored"
        /// The response is stored but must not be reused without validation, which is what sharing would be (RFC 9111 §4).
        case mustValidate = "must-validate"
        case failed

        /// True if the next response is likely to be unshareable too, so that `HitForMissKeys` should record the key.
        package var isLasting: Bool {
            switch self {
            case .isPrivate, .notStored, .mustValidate: true
            case .vary, .failed: false
            }
        }
    }

    /// Decides for one follower.
    /// - Parameter identity: The follower's identity, in the form that `StoragePartition.own` accepts.
    package static func outcome(of arrival: Arrival, for follower: RequestHead, identity: String?, now: Timestamp) -> Outcome {
        switch arrival {
        case .failed: return .release(.failed)
        case .notStored: return .release(.notStored)
        case .stored(let response, let partition):
            let isReadable = partition == .shared || (partition != .anonymous && partition == .own(identity))
            guard isReadable else { return .release(.isPrivate) }
            guard Vary.matches(stored: response, request: follower) else { return .release(.vary) }
            // Decide as if the response had been stored earlier, strictly by the RFC: the policy's relaxations apply only while the
            // upstream is unreachable.
            switch Reuse.decide(candidates: [response], request: follower, context: ReuseContext(), now: now) {
            case .fresh, .stale: return .share
            case .validate, .complete, .none, .gatewayTimeout: return .release(.mustValidate)
            }
        }
    }
}
