// Threads for file work, so that neither event loops nor Swift's own pool ever wait for a disk (design §4.7).
import Dispatch

/// A few serial queues. Work of one number keeps its order; work of others runs beside it.
struct FileLanes: Sendable {
    private let queues: [DispatchQueue]

    init(label: String, count: Int = 2) {
        queues = (0..<max(1, count)).map { DispatchQueue(label: "\(label).\($0)", qos: .userInitiated) }
    }

    /// Runs `work` on the queue that `number` falls to.
    func run<T: Sendable>(_ number: UInt64, _ work: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queues[Int(number % UInt64(queues.count))].async { continuation.resume(with: Result { try work() }) }
        }
    }

    /// Runs `work` some time later, nobody waiting for it.
    func start(_ number: UInt64, _ work: @escaping @Sendable () -> Void) {
        queues[Int(number % UInt64(queues.count))].async(execute: work)
    }
}
