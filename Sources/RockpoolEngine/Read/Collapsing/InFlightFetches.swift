// The running fetches by key, and the keys that are not coalesced (RFC 9111 §4).
import RockpoolCore
import Synchronization

/// All coalesced fetches of the server. One lock, held for a dictionary access.
final class InFlightFetches: Sendable {
    /// The role of a request that must be forwarded.
    enum Place: Sendable {
        /// No fetch is running: send the request, and `leave` the table when the response can be found in the store.
        case lead(CoalescedFetch)
        case follow(CoalescedFetch)
        /// A fetch for this key has ended since lookup: read the store again.
        case lookAgain
        /// Send a separate request: responses of this key could not be shared lately, or the request may not follow the running fetch.
        case alone
    }

    private struct State {
        var fills: [FillKey: CoalescedFetch] = [:]
        var refreshes: Set<FillKey> = []
        var uncollapsible = HitForMissKeys()
        /// Counts completed fetches per hash slot; a caller with an old epoch must read the store again instead of leading a new fetch.
        var epochs = [UInt64](repeating: 0, count: 1024)
    }

    private let state = Mutex(State())

    /// Returns the current epoch. Read it before lookup.
    func epoch(of key: CacheKey) -> UInt64 { state.withLock { $0.epochs[Self.slot(key)] } }

    /// - Parameters:
    ///   - epoch: The epoch of the key's base from before lookup; nil if the store must not be read again.
    ///   - mayFollow: True if the response to another request is acceptable.
    func join(_ key: FillKey, since epoch: UInt64?, mayFollow: Bool, now: Timestamp) -> Place {
        state.withLock { state in
            if state.uncollapsible.contains(key.base, now: now) { return .alone }
            if let fill = state.fills[key] { return mayFollow ? .follow(fill) : .alone }
            guard epoch == nil || state.epochs[Self.slot(key.base)] == epoch else { return .lookAgain }
            let fill = CoalescedFetch()
            state.fills[key] = fill
            return .lead(fill)
        }
    }

    /// True if responses of a key could not be shared lately.
    func isUncollapsible(_ key: CacheKey, now: Timestamp) -> Bool { state.withLock { $0.uncollapsible.contains(key, now: now) } }

    /// Returns the running fetch of a key, for a request that may read along but neither leads nor waits for the next fetch.
    func underWay(_ key: FillKey) -> CoalescedFetch? { state.withLock { $0.fills[key] } }

    /// Registers a background refresh, which ends with `endRefresh`. Returns false if a fetch or refresh of the key is running.
    func beginRefresh(_ key: FillKey) -> Bool {
        state.withLock { $0.fills[key] == nil && $0.refreshes.insert(key).inserted }
    }

    /// Number of running refreshes.
    var refreshing: Int { state.withLock(\.refreshes.count) }

    func endRefresh(_ key: FillKey) { state.withLock { _ = $0.refreshes.remove(key) } }

    /// Removes a fetch that has ended; its response, if stored, can be found in the store.
    func leave(_ key: FillKey) {
        state.withLock { state in
            state.fills[key] = nil
            state.epochs[Self.slot(key.base)] &+= 1
        }
    }

    /// Records that a response could not be shared, so that the next requests do not wait for one.
    func note(uncollapsible key: CacheKey, now: Timestamp) { state.withLock { $0.uncollapsible.note(key, now: now) } }

    /// Number of requests that wait for a response head.
    var waiting: Int { state.withLock { $0.fills.values.reduce(0) { $0 + $1.waiting } } }

    private static func slot(_ key: CacheKey) -> Int { key.hashValue & 1023 }
}
