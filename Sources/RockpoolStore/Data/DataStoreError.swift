// The errors of the data store, with their remedies (docs/storage.md#durability, docs/storage.md#faults).
package import RockpoolCore

/// An error of the data store. A call that throws one has changed nothing.
package enum DataStoreError: Error, Equatable {
    /// Another server uses the store. `pid` is read from its lock file, nil when unreadable.
    case locked(pid: Int32?)
    /// The directory or a secret in it is accessible to other users.
    case readableByOthers(path: String)
    /// The admin token in the file is too short and could be guessed.
    case shortToken(path: String)
    /// `install-key` holds no key: it is empty, or was replaced.
    case noKey(path: String)
    /// The secret in `storage.key_file` is one that can be guessed.
    case shortKey(path: String)
    /// Queued bodies are sealed under a key that is neither the installation's own nor that of `storage.key_file`.
    case unknownKey(path: String)
    /// The database is damaged; nothing was changed.
    case corrupt(path: String, detail: String)
    /// The database of a directory that was in use is missing or empty; nothing was changed.
    case lost(path: String)
    /// The database was written by a newer Rockpool.
    case newerSchema(path: String, found: Int, known: Int)
    /// No space under `data_limit` (507).
    case full
    /// No space on the disk, whatever `data_limit` leaves (507).
    case diskFull
    /// The writer's share of `data_limit` is used up, by its own operations or by those of others in the same share (507).
    case shareUsedUp(OutboxShare)
    /// The upstream's own part of `data_limit` (`upstreams[].data_limit`) is used up (507).
    case upstreamFull(name: String)
    /// A telemetry write is larger than what its route's `limit` lets wait at all (507).
    case queueFull(name: String, limit: ByteCount)
    /// This principal has used this client key before, for the named operation (422, or the response of that operation).
    case duplicateKey(id: String)
    case notFound(id: String)
    /// The operation that a new one depends on does not exist (400).
    case unknownDependency(id: String)
    /// The transition between these states is not permitted (409).
    case illegal(from: OperationState, to: OperationState)
    /// Other operations need this one (409).
    case needed(by: [OperationLink])
    /// No conflict has this id (404).
    case conflictNotFound(id: String)
    /// The conflict was decided before (409).
    case conflictDecided(id: String)
    /// The disk or the database failed (503).
    case unavailable(String)
    /// The fleet's database refuses the change itself, and would again (503).
    case refused(String)
    /// The fleet's database is away, so that nothing shared can change; if the detail says so, it may have kept what was asked for (503).
    case away(String)
}

extension DataStoreError: CustomStringConvertible {
    /// The message for people, with the remedy.
    package var description: String {
        switch self {
        case .locked(let pid?):
            "another Rockpool (pid \(pid)) uses this state directory; stop it or choose another directory"
        case .locked(pid: nil): "a command of Rockpool, or one in another container, uses this state directory; try again when it has ended"
        case .readableByOthers(let path): "\(path) can be read by others; run: chmod go-rwx '\(path)'"
        case .shortToken(let path):
            "\(path) holds fewer than \(DataStore.leastTokenBytes) characters; remove it, and a new token is made"
        case .noKey(let path):
            """
            \(path) is no key of an installation; restore it from a backup, or remove it: with a new one, queued writes wait for their \
            former owners for ever
            """
        case .shortKey(let path):
            "\(path) (storage.key_file) holds fewer than \(BodySeal.leastKeyBytes) characters; make one with: openssl rand -hex 32"
        case .unknownKey(let path):
            "queued bodies in \(path) are sealed under a key that is not at hand; set storage.key_file to the file that was used before"
        case .corrupt(let path, let detail):
            "\(path) is damaged (\(detail)) and was left untouched; copy what can be read into a new directory: rockpool doctor --recover DIR"
        case .lost(let path):
            """
            \(path) is missing or empty, but its directory was in use; restore it from a backup, or, to begin with an empty outbox, move it \
            and blobs/ elsewhere
            """
        case .newerSchema(let path, let found, let known):
            "\(path) has schema \(found), this Rockpool knows up to \(known); run the newer version again"
        case .full: "the outbox has no room left"
        case .diskFull: "the disk of the state directory is full"
        case .shareUsedUp(let share): "\(share.words) is used up"
        case .upstreamFull(let name): "the space for queued writes of upstream \(name) (its data_limit) is used up"
        case .queueFull(let name, let limit): "it is larger than the limit (\(limit)) of its telemetry route at upstream \(name)"
        case .duplicateKey(let id): "the key was used before, for operation \(id)"
        case .notFound(let id): "there is no operation \(id)"
        case .unknownDependency(let id): "there is no operation \(id) to wait for"
        case .illegal(let from, let to): "an operation that is \(from.rawValue) cannot become \(to.rawValue)"
        case .needed(let others): others.count.counted("later operation needs", "later operations need") + " this one"
        case .conflictNotFound(let id): "there is no conflict \(id)"
        case .conflictDecided(let id): "conflict \(id) has been decided already"
        case .unavailable(let detail): detail
        case .refused(let detail): "the fleet's database does not take this: \(detail)"
        case .away(let detail): "the fleet's database is away: \(detail)"
        }
    }

    /// True if there is no room, under the limit or on the disk.
    package var isNoRoom: Bool { self == .full || self == .diskFull }
}
