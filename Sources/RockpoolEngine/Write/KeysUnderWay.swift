// Admits one request at a time for each client key: a repeat is refused while the first is being sent (docs/outbox.md#keys).
import RockpoolCore
import RockpoolStore
import Synchronization

/// Client keys of requests that are being sent or stored.
final class KeysUnderWay: Sendable {
    enum Standing: Equatable {
        /// No other request with this key is under way. The caller must call `leave` afterwards.
        case first
        /// The same request is under way.
        case underWay
        /// Another request is under way with this key.
        case reused
    }

    struct Key: Hashable {
        var upstream: String
        var principal: String?
        var key: String

        init(_ operation: QueuedWriteDraft) {
            upstream = operation.upstream
            principal = operation.principal
            key = operation.idempotencyKey
        }
    }

    private let fingerprints = Mutex<[Key: [UInt8]]>([:])

    /// Checks and registers the key in one step, so that only one of two concurrent requests is the first.
    func claim(_ key: Key, fingerprint: [UInt8]) -> Standing {
        fingerprints.withLock { fingerprints in
            if let earlier = fingerprints[key] { return earlier == fingerprint ? .underWay : .reused }
            fingerprints[key] = fingerprint
            return .first
        }
    }

    func leave(_ key: Key) { fingerprints.withLock { $0[key] = nil } }
}

/// The claim of one key, until it is left, at the latest by its end.
final class KeyClaim: Sendable {
    private let keys: KeysUnderWay
    private let key: Mutex<KeysUnderWay.Key?>

    /// - Parameter key: which was claimed as the first.
    init(_ key: KeysUnderWay.Key, among keys: KeysUnderWay) {
        self.keys = keys
        self.key = Mutex(key)
    }

    deinit { leave() }

    func leave() {
        let key = key.withLock { key in
            defer { key = nil }
            return key
        }
        if let key { keys.leave(key) }
    }
}
