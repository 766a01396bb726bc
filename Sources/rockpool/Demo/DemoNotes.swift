// The file of the notes of `rockpool demo --api`, which outlive the program as those of a real API do.
import Foundation
import NotesAPI
import RockpoolCore

/// A file with the data of the API on one port.
struct DemoNotes: Sendable {
    let file: String

    init(port: Int, environment: [String: String]) {
        file = Directories.clientFiles(environment: environment) + "/demo-notes-\(port).json"
    }

    /// The API as it was, or a new one. `isKept` is false where the file cannot be written.
    func store() throws -> (store: NotesStore, isKept: Bool) {
        guard let data = FileManager.default.contents(atPath: file) else {
            let new = NotesStore(seed: DemoStage.seed, now: NotesServer.systemClock())
            let directory = (file as NSString).deletingLastPathComponent
            try? FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            return (new, keep(new))
        }
        guard let store = (try? JSONValue.parse(Array(data))).flatMap({ NotesStore(kept: $0) }) else {
            throw CommandFailure(.failed, "\(file) has no notes of the demo; remove it to begin anew".inOneLine)
        }
        return (store, true)
    }

    /// Writes the file anew. False if it cannot be written.
    @discardableResult
    func keep(_ store: NotesStore) -> Bool {
        (try? Data(store.kept.serialized()).write(to: URL(fileURLWithPath: file), options: .atomic)) != nil
    }
}
