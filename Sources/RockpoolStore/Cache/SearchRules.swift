// The No-Vary-Search rules of origins by path, in memory, bounded (No-Vary-Search).
import Synchronization

/// Rules by path. The single lock is held only for a dictionary access: callable on any event loop.
final class SearchRules: Sendable {
    private struct Rule {
        var text: String
        /// Increases with every update; the rule with the lowest value is dropped first.
        var order: UInt64
        /// Milliseconds; as stored in the row.
        var writtenAt: Int64
    }

    private struct State {
        var rules: [String: Rule] = [:]
        var clock: UInt64 = 0
    }

    /// Milliseconds after which an unchanged rule is written again, to persist the order of the rules.
    private static let hour: Int64 = 3_600_000

    private let limit: Int
    private let state: Mutex<State>

    /// - Parameter stored: the stored rules, the least recently noted first.
    init(limit: Int, stored: [(path: String, rule: String, writtenAt: Int64)] = []) {
        self.limit = max(1, limit)
        var initial = State()
        for (path, rule, writtenAt) in stored.suffix(self.limit) {
            initial.clock += 1
            initial.rules[path] = Rule(text: rule, order: initial.clock, writtenAt: writtenAt)
        }
        state = Mutex(initial)
    }

    var isEmpty: Bool { state.withLock(\.rules.isEmpty) }

    subscript(path: String) -> String? { state.withLock { $0.rules[path]?.text } }

    /// Sets the rule of a path, or removes it.
    /// - Returns: the paths with outdated rows.
    func note(_ rule: String?, of path: String, at moment: Int64) -> [String] {
        state.withLock { state in
            guard let rule else { return state.rules.removeValue(forKey: path) == nil ? [] : [path] }
            state.clock += 1
            if let known = state.rules[path], known.text == rule, moment - known.writtenAt < Self.hour {
                state.rules[path]?.order = state.clock
                return []
            }
            state.rules[path] = Rule(text: rule, order: state.clock, writtenAt: moment)
            guard state.rules.count > limit, let oldest = state.rules.min(by: { $0.value.order < $1.value.order })?.key else {
                return [path]
            }
            state.rules[oldest] = nil
            return [path, oldest]
        }
    }
}
