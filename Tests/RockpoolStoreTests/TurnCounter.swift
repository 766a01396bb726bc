// Counts the transactions of a writer.
import GRDB

/// Calls a closure at every commit.
final class TurnCounter: TransactionObserver {
    private let noteCommit: () -> Void

    init(_ noteCommit: @escaping () -> Void) { self.noteCommit = noteCommit }

    func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }
    func databaseDidChange(with event: DatabaseEvent) {}
    func databaseDidCommit(_ db: Database) { noteCommit() }
    func databaseDidRollback(_ db: Database) {}
}
