// The last exchanges, for `/v1/requests` and `rockpool tail` (docs/reference/admin-api.md#requests).
import DequeModule
package import RockpoolCore
import Synchronization

/// A ring of recorded exchanges, bounded by their number and by their bytes. Records are formatted only when they are read.
package final class ExchangeRing: Sendable {
    /// Maximum number of records.
    package static let capacity = 10_000
    /// Maximum size of all records in bytes, estimated.
    package static let byteLimit = Int.mib(16)
    /// Exchanges of the full path that are all recorded within one second. Of further ones, one in `stride` is recorded.
    package static let fullRate = 1000
    /// See `fullRate`.
    package static let stride = 16
    /// Failures, refusals and queued writes that are all recorded within one second.
    package static let notableRate = 5000

    private struct State {
        var items = Deque<RecordedExchange>()
        var bytes = 0
        /// The number of the newest record.
        var last: UInt64 = 0
        /// The second in which `ordinary` and `notable` were counted.
        var second: Int64 = .min
        var (ordinary, notable) = (0, 0)
        /// Ordinary exchanges since the last record of one.
        var unrecorded = 0
    }

    private let state = Mutex(State())
    /// Distinguishes the ids of this process from those of an earlier one.
    private let epoch: String

    /// - Parameter start: the start of the process.
    package init(start: Timestamp) { epoch = String(start.milliseconds, radix: 36) }

    /// Counts an exchange of the full path.
    /// - Parameter isNotable: true for a failure, a refusal or a queued write.
    /// - Returns: The number of exchanges that a record of this one stands for; 0 if it is not recorded.
    func admit(isNotable: Bool, at now: Timestamp) -> Int {
        state.withLock { state in
            if state.second != now.seconds { (state.second, state.ordinary, state.notable) = (now.seconds, 0, 0) }
            if isNotable {
                state.notable += 1
                return state.notable <= Self.notableRate ? 1 : 0
            }
            state.ordinary += 1
            state.unrecorded += 1
            guard state.ordinary <= Self.fullRate || state.ordinary % Self.stride == 0 else { return 0 }
            defer { state.unrecorded = 0 }
            return state.unrecorded
        }
    }

    /// Records an exchange of the full path that has ended, unless there are too many.
    func record(_ full: RecordedExchange.FullExchange, at now: Timestamp) {
        let represents = admit(isNotable: full.isNotable, at: now)
        if represents > 0 { append(.full(full.kept), at: full.trace.startedAt, represents: represents) }
    }

    /// Appends a record; the oldest ones give way.
    func append(_ content: RecordedExchange.Content, at moment: Timestamp, represents: Int) {
        let cost = content.cost
        state.withLock { state in
            state.last += 1
            state.items.append(RecordedExchange(number: state.last, at: moment, represents: represents, cost: cost, content: content))
            state.bytes += cost
            while state.items.count > Self.capacity || state.bytes > Self.byteLimit {
                state.bytes -= state.items.removeFirst().cost
            }
        }
    }

    /// The number of the newest record; 0 before the first.
    package var last: UInt64 { state.withLock { $0.last } }

    /// The number of records.
    package var count: Int { state.withLock { $0.items.count } }

    /// Returns the records with greater numbers, the oldest first.
    package func records(after number: UInt64) -> [RecordedExchange] {
        state.withLock { state in
            let missing = Int(clamping: state.last - min(number, state.last))
            return Array(state.items.suffix(missing))
        }
    }

    /// Returns the newest records with a number below `bound` that the filter selects, the newest first.
    /// - Returns: `next` is the bound of the next page; nil if there is none.
    package func page(_ filter: ExchangeFilter, below bound: UInt64?, limit: Int) -> (items: [ExchangeRecord], next: UInt64?) {
        var items: [ExchangeRecord] = []
        for recorded in records(after: 0).reversed() where recorded.number < bound ?? .max {
            if let since = filter.since, recorded.at < since { break }
            let record = recorded.record(in: epoch)
            guard filter.matches(record) else { continue }
            if items.count == limit { return (items, items.isEmpty ? nil : number(ofID: items[limit - 1].id)) }
            items.append(record)
        }
        return (items, nil)
    }

    /// Returns the records after `number` that the filter selects, the oldest first, and the number of the newest record.
    package func news(_ filter: ExchangeFilter, after number: UInt64) -> (items: [ExchangeRecord], last: UInt64) {
        let fresh = records(after: number)
        return (fresh.map { $0.record(in: epoch) }.filter(filter.matches), fresh.last?.number ?? number)
    }

    /// Returns the record with this id; nil if it is no longer held.
    package func record(id: String) -> ExchangeRecord? {
        guard let number = number(ofID: id), number > 0 else { return nil }
        return records(after: number - 1).first { $0.number == number }?.record(in: epoch)
    }

    private func number(ofID id: String) -> UInt64? {
        let parts = id.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count == 2 && parts[0] == epoch ? UInt64(parts[1]) : nil
    }
}

/// The sampling of one event loop: every hit while there are few, one of many else. A hit that is not recorded costs two additions.
struct HotSampling {
    /// Hits of one loop that are all recorded within one second. Of further ones, one in `stride` is recorded.
    static let fullRate = 200
    /// See `fullRate`; a power of two.
    static let stride = 1024

    /// The end of the current second.
    private var until = Timestamp.distantPast
    /// Hits in the current second.
    private var count = 0
    /// Hits since the last record, which stands for them.
    private var unrecorded = 0

    /// True if the next hit is recorded.
    func isDue(at now: Timestamp) -> Bool {
        now >= until || count < Self.fullRate || (count &+ 1) & (Self.stride - 1) == 0
    }

    /// Counts a hit that is not recorded.
    mutating func skip() {
        count &+= 1
        unrecorded &+= 1
    }

    /// Counts a hit that is recorded.
    /// - Returns: The number of hits that the record stands for.
    mutating func take(at now: Timestamp) -> Int {
        if now >= until || until - now > .seconds(1) { (until, count) = (now + .seconds(1), 0) }
        count &+= 1
        defer { unrecorded = 0 }
        return unrecorded + 1
    }
}
