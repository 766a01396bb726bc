// Runs the tasks of a connection's reads on its own event loop, so that a read from memory wakes no thread (docs/architecture.md#parts).
import NIOCore

/// Runs jobs of tasks between the events of one loop. Blocking work (the disk, the upstream) has its own threads.
final class LoopExecutor: TaskExecutor {
    let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
