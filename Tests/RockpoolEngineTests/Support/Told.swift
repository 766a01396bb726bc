// The events that an engine has published.
import RockpoolCore
import RockpoolEngine
import Synchronization

/// Collects events from its creation on.
final class Told: Sendable {
    private let heard = Mutex<[EngineEvents.Event]>([])

    init(_ events: EngineEvents) { events.listen { event in self.heard.withLock { $0.append(event) } } }

    var credentials: Int { heard.withLock { $0.count { if case .credential = $0 { true } else { false } } } }
    /// The states of operations, in the order of publication.
    var states: [OperationState] {
        heard.withLock { $0.compactMap { if case .operation(_, let state, _) = $0 { state } else { nil } } }
    }
}
