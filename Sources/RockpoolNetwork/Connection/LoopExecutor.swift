// Runs the tasks of a connection's reads on its own event loop: no thread has to be woken to look into memory (design §6).
import NIOCore

/// Jobs of tasks, run between the events of one loop. What they wait for (the disk, the upstream) has threads of its own.
final class LoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
