// What a live write, or a purge, at this node makes out of date, told to the other nodes of its fleet (docs/fleet.md#copies).
import Logging
import RockpoolCore
package import RockpoolStore
import Synchronization

/// Tells it behind the answer: nobody waits for the shared database, and what comes meanwhile is told together.
package final class StaleNews: Sendable {
    private struct State {
        var waiting: Set<StalePlace> = []
        var isSending = false
    }

    /// The most places that wait while the database is away: beyond, copies at other nodes last as long as their lifetime.
    private static let limit = 10_000
    private static let pause = Duration.seconds(1)

    private let data: DataStore
    private let logger: Logger
    private let state = Mutex(State())

    init(data: DataStore, logger: Logger) { (self.data, self.logger) = (data, logger) }

    /// Tells what a purge has removed here.
    package func tell(_ purge: CacheSelection) { tell([.purge(purge.text)]) }

    func tell(_ named: @autoclosure () -> [StalePlace]) {
        guard data.isOfFleet, case let places = named(), !places.isEmpty else { return }
        let begins = state.withLock { state in
            if state.waiting.count < Self.limit { state.waiting.formUnion(places) }
            defer { state.isSending = true }
            return !state.isSending
        }
        guard begins else { return }
        Task { [weak self] in
            while let pause = await self?.send() { try? await Task.sleep(for: pause) }
        }
    }

    /// Sends what waits.
    /// - Returns: the time until the next attempt; nil if nothing is left.
    private func send() async -> Duration? {
        let places = state.withLock { state in
            let places = state.waiting
            (state.waiting, state.isSending) = ([], !places.isEmpty)
            return places
        }
        if places.isEmpty { return nil }
        do { try await data.share(places) } catch DataStoreError.away {
            state.withLock { $0.waiting.formUnion(places) }
            return Self.pause
        } catch {
            logger.failed("telling the fleet what is out of date failed", error: error)
        }
        return .zero
    }
}
