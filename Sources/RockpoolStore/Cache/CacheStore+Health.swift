// A cache whose disk fails is off until it works again; traffic flows past it (storage.md §7).
import GRDB
import Glibc
import Logging
package import RockpoolCore
import Synchronization

extension CacheStore {
    /// What keeps it from storing; nil: nothing does.
    package var trouble: StorageHealth.Trouble? { health.withLock(\.machine.trouble) }

    /// Calls `observer` when storing begins to fail, and when it works again.
    package func onHealthChange(_ observer: @escaping @Sendable (StorageHealth.Change) -> Void) {
        health.withLock { $0.observer = observer }
    }

    /// Whether a body may be begun.
    var mayWrite: Bool { health.withLock { $0.machine.mayWrite(now: clock()) } }

    /// Runs what writes to the disk, and notes how that went.
    func watched<T>(_ write: () async throws -> T) async throws -> T {
        do {
            let value = try await write()
            tell(health.withLock { ($0.machine.wrote(), $0.observer) })
            return value
        } catch {
            noteFailure(error)
            throw error
        }
    }

    func noteFailure(_ error: any Error) {
        guard let fault = StorageHealth.Fault(error) else { return }
        fail(fault, detail: "\(error)")
    }

    func fail(_ fault: StorageHealth.Fault, detail: String) {
        let change = health.withLock { ($0.machine.failed(fault, detail: detail, now: clock()), $0.observer) }
        tell(change)
        guard case .fell(let fault) = change.0 else { return }
        logger.error("the cache stores nothing for now", metadata: ["fault": "\(fault.rawValue)", "error": "\(detail)"])
        if fault == .full { Task { await yieldDisk() } }
    }

    /// Makes what anybody may have deleted under us: the tag first, by which the next start knows the directory. Blocks.
    /// - Throws: `ForeignDirectory` when somebody else has taken the place; `FileError`.
    func makePlacesAgain() throws {
        guard FileStatus.of("\(directory)/tmp") == nil || FileStatus.of(bodies.root) == nil else { return }
        try Paths.makeDirectories(directory)
        try CacheDirectoryTag.claim(directory)
        for place in ["\(directory)/tmp", bodies.root] { try Paths.makeDirectory(place) }
    }

    /// Others have filled the disk. The log is cut, so that there is room for the rows that evicting changes; then the limit follows
    /// what the disk has.
    private func yieldDisk() async {
        try? await queue.outside { try $0.truncateLog() }
        counters.withLock { $0.nextBinding = Timestamp(milliseconds: .min) }
        await bindWhenDue()
    }

    private func tell(_ report: (change: StorageHealth.Change, observer: (@Sendable (StorageHealth.Change) -> Void)?)) {
        if report.change == .none { return }
        if report.change == .recovered { logger.notice("the cache stores again") }
        report.observer?(report.change)
    }

    /// After an unclean stop, the pages of the database are looked at beside the traffic: a start does not wait for that, a lookup asks
    /// each row's checksum anyway. What is damaged is set aside by the next start.
    func checkPagesInBackground() {
        pageCheck.withLock { task in
            task = Task(priority: .utility) { [self] in
                // By a connection of its own: those of the pool stay free for who waits.
                guard let reader = try? StoreDatabase.reader(database.path) else { return }
                let problems = try? await PageCheck.problems(reader, byTable: true)
                try? reader.close()
                if let problem = problems?.first { condemn(problem) }
            }
        }
    }

    private func condemn(_ verdict: String) {
        fail(.damaged, detail: verdict)
        do { try Descriptor(Self.condemnation(in: directory), O_WRONLY | O_CREAT).synchronize() } catch {
            logger.error("the damage cannot be noted", metadata: ["error": "\(error)"])
        }
    }

    /// The empty file that says that `cache.sqlite` is damaged.
    static func condemnation(in directory: String) -> String { "\(directory)/damaged" }
}
