// Threads for file I/O, so that neither event loops nor Swift's own pool ever wait for a disk (docs/architecture.md#rules).
import Dispatch

/// A few serial queues. Work with the same number keeps its order; work with other numbers may run in parallel.
struct FileLanes: Sendable {
    private let queues: [DispatchQueue]

    init(label: String, count: Int = 2) {
        queues = (0..<max(1, count)).map { DispatchQueue(label: "\(label).\($0)") }
    }

    /// Runs `work` on the queue selected by `number`.
    func run<T: Sendable>(_ number: UInt64, _ work: @escaping @Sendable () throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            queues[Int(number % UInt64(queues.count))].async { continuation.resume(with: Result { try work() }) }
        }
    }

    /// Starts `work` without waiting for it.
    func start(_ number: UInt64, _ work: @escaping @Sendable () -> Void) {
        queues[Int(number % UInt64(queues.count))].async(execute: work)
    }
}
