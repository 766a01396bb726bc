// One request at a time for one client key: who comes again while the first is being sent is told so (docs/outbox.md#keys).
import RockpoolCore
import RockpoolStore
import Synchronization

/// Client keys whose first request is on its way to the upstream, or to its row.
final class KeysUnderWay: Sendable {
    enum Standing: Equatable {
        /// It is the first, and must `leave`.
        case first
        /// The same request is on its way.
        case underWay
        /// Another request is on its way with this key.
        case reused
    }

    struct Key: Hashable {
        var upstream: String
        var principal: String?
        var key: String

        init(_ operation: NewOperation) {
            upstream = operation.upstream
            principal = operation.principal
            key = operation.idempotencyKey
        }
    }

    private let fingerprints = Mutex<[Key: [UInt8]]>([:])

    /// Looking and entering are one step: of two that come at once, one is first.
    func claim(_ key: Key, fingerprint: [UInt8]) -> Standing {
        fingerprints.withLock { fingerprints in
            if let earlier = fingerprints[key] { return earlier == fingerprint ? .underWay : .reused }
            fingerprints[key] = fingerprint
            return .first
        }
    }

    func leave(_ key: Key) { fingerprints.withLock { $0[key] = nil } }
}
