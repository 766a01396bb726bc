// Queued writes in the ring of exchanges: when one has ended or needs a person (docs/reference/admin-api.md#requests).
import RockpoolCore
import RockpoolStore
import Synchronization

/// Adds queued writes to the ring in the states that an operator wants to see.
package final class OperationRecorder: Sendable {
    /// Maximum number of changes that wait; further ones are not recorded.
    private static let waitingLimit = 1024
    /// Deliveries that are recorded within one second.
    private static let deliveryRate = 100

    private let data: DataStore
    private let documents: OperationDocuments
    private let ring: ExchangeRing
    private let now: @Sendable () -> Timestamp
    private let changes: AsyncStream<String>
    private let deliveries = Mutex((second: Int64.min, count: 0))

    init(
        data: DataStore, documents: OperationDocuments, events: EngineEvents, ring: ExchangeRing, now: @escaping @Sendable () -> Timestamp
    ) {
        (self.data, self.documents, self.ring, self.now) = (data, documents, ring, now)
        let (changes, change) = AsyncStream.makeStream(of: String.self, bufferingPolicy: .bufferingOldest(Self.waitingLimit))
        self.changes = changes
        events.listen { [weak self] event in
            if case .operation(let id, let state, isNews: true) = event, self?.isShown(state) == true { change.yield(id) }
        }
    }

    private func isShown(_ state: OperationState) -> Bool {
        switch state {
        case .dead, .conflicted, .uncertain, .parked: true
        case .delivered:
            deliveries.withLock { [second = now().seconds] deliveries in
                if deliveries.second != second { deliveries = (second, 0) }
                deliveries.count += 1
                return deliveries.count <= Self.deliveryRate
            }
        default: false
        }
    }

    /// Records changes until it is cancelled.
    package func run() async {
        for await id in changes {
            guard let write = try? await data.operation(id: id), isShownNow(write.state) else { continue }
            let document = try? await documents.documents(of: [write]).first
            let words = document?["waiting"]?.string ?? write.reason?.rawValue ?? write.lastError ?? ""
            var kept = write
            kept.request.fields = RecordedExchange.Content.kept(write.request.fields, of: nil)
            kept.body = .none
            kept.result = write.result.map { result in
                var result = result
                (result.body, result.head.fields) = ([], RecordedExchange.Content.kept(result.head.fields, of: nil))
                return result
            }
            ring.append(.operation(kept, why: words), at: now(), represents: 1)
        }
    }

    private func isShownNow(_ state: OperationState) -> Bool {
        [.dead, .conflicted, .uncertain, .parked, .delivered].contains(state)
    }
}
