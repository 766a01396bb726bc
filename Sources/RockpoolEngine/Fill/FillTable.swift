// The fetches under way, by what they ask for; and which keys are not worth waiting for (RFC 9111 §4).
import RockpoolCore
import Synchronization

/// What requests have in common that one fetch may serve.
struct FillKey: Hashable, Sendable {
    /// In the request's own partition.
    let base: CacheKey
    /// The fields that select among several responses, as far as they are known (`Vary.variantKey`).
    var variant = ""
}

/// Every fill of the server. One lock, held for a dictionary access.
final class FillTable: Sendable {
    /// What a request that has to be forwarded becomes.
    enum Place: Sendable {
        /// Nobody asks yet: fetch, and `leave` the table once the answer can be looked up.
        case lead(Fill)
        case follow(Fill)
        /// A fetch for this key has ended since the store was looked at: look again.
        case lookAgain
        /// Answers to this key were not for sharing lately: fetch alone.
        case alone
    }

    private struct State {
        var fills: [FillKey: Fill] = [:]
        var refreshes: Set<FillKey> = []
        var uncollapsible = UncollapsibleKeys()
        /// Counts ends of fills by a few bits of their key, so that nobody who looked before one leads another after it.
        var epochs = [UInt64](repeating: 0, count: 1024)
    }

    private let state = Mutex(State())

    /// To be taken before the store is looked at.
    func epoch(of key: CacheKey) -> UInt64 { state.withLock { $0.epochs[Self.slot(key)] } }

    /// - Parameters:
    ///   - epoch: Of the key's base, from before the store was looked at; nil when it is not to be looked at again.
    ///   - mayFollow: Whether an answer to somebody else's request will do.
    func join(_ key: FillKey, since epoch: UInt64?, mayFollow: Bool, now: Timestamp) -> Place {
        state.withLock { state in
            if state.uncollapsible.contains(key.base, now: now) { return .alone }
            if let fill = state.fills[key] { return mayFollow ? .follow(fill) : .alone }
            guard epoch == nil || state.epochs[Self.slot(key.base)] == epoch else { return .lookAgain }
            let fill = Fill()
            state.fills[key] = fill
            return .lead(fill)
        }
    }

    /// Whether answers to a key were not for sharing lately.
    func isUncollapsible(_ key: CacheKey, now: Timestamp) -> Bool { state.withLock { $0.uncollapsible.contains(key, now: now) } }

    /// The fetch under way for a key, for a request that may read along but neither lead nor wait for the next.
    func underWay(_ key: FillKey) -> Fill? { state.withLock { $0.fills[key] } }

    /// Whether a refresh behind the clients' backs may start; one at a time for a key, which ends with `endRefresh`.
    func beginRefresh(_ key: FillKey) -> Bool {
        state.withLock { $0.fills[key] == nil && $0.refreshes.insert(key).inserted }
    }

    /// Refreshes under way.
    var refreshing: Int { state.withLock(\.refreshes.count) }

    func endRefresh(_ key: FillKey) { state.withLock { _ = $0.refreshes.remove(key) } }

    /// The fetch has ended, and what it brought, if anything, can be looked up.
    func leave(_ key: FillKey) {
        state.withLock { state in
            state.fills[key] = nil
            state.epochs[Self.slot(key.base)] &+= 1
        }
    }

    /// An answer was not for sharing: the next requests need not wait to learn the same.
    func note(uncollapsible key: CacheKey, now: Timestamp) { state.withLock { $0.uncollapsible.note(key, now: now) } }

    /// How many requests wait for the head of an answer.
    var waiting: Int { state.withLock { $0.fills.values.reduce(0) { $0 + $1.waiting } } }

    private static func slot(_ key: CacheKey) -> Int { key.hashValue & 1023 }
}
