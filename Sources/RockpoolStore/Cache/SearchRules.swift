// What origins said of the queries of their paths: the No-Vary-Search rules, in memory, bounded (No-Vary-Search).
import Synchronization

/// Rules by path. One lock, held for a dictionary access: any event loop may ask.
final class SearchRules: Sendable {
    private struct Rule {
        var text: String
        /// Rises with every noting; the least goes first.
        var order: UInt64
        /// Milliseconds; what the row says.
        var writtenAt: Int64
    }

    private struct State {
        var rules: [String: Rule] = [:]
        var clock: UInt64 = 0
    }

    /// Rows are written when a rule changes, and to keep their order once in this many milliseconds.
    private static let hour: Int64 = 3_600_000

    private let limit: Int
    private let state: Mutex<State>

    /// - Parameter stored: from the least recently noted on.
    init(limit: Int, stored: [(path: String, rule: String, writtenAt: Int64)] = []) {
        self.limit = max(1, limit)
        var initial = State()
        for (path, rule, writtenAt) in stored.suffix(self.limit) {
            initial.clock += 1
            initial.rules[path] = Rule(text: rule, order: initial.clock, writtenAt: writtenAt)
        }
        state = Mutex(initial)
    }

    subscript(path: String) -> String? { state.withLock { $0.rules[path]?.text } }

    /// Takes a rule, or forgets it.
    /// - Returns: the paths whose rows are not what they should be any more.
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
