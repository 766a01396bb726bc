// What folds are made of and what they have made: queued writes as the input, and the last folded collections (docs/outbox.md#reads).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// Keeps representations with queued writes folded in, while nothing changes that they are made of, so that a client that reads a collection
/// again does not fold thousands of writes anew.
final class FoldedReads: Sendable {
    /// The read of one client.
    struct Key: Hashable, Sendable {
        let upstream: String
        let collection: String
        let principal: String?
        let query: String?
    }

    /// The state of everything that a fold reads besides the server's representation. Taken before it is read.
    struct Version: Equatable, Sendable {
        /// The number of commits of the outbox.
        let commits: Int
        /// The number of changes of the overlay: a commit is published after it.
        let notes: Int
        /// The number of configurations.
        let configurations: Int
    }

    /// The server's representation under the writes.
    struct Base: Equatable, Sendable {
        let bytes: ByteBuffer?
        /// The time until which it includes writes.
        let includesUntil: Tick?
    }

    /// A representation with writes folded in.
    struct Representation: Sendable {
        let body: ByteBuffer
        /// The sequence of the last write in it.
        let last: Int64
        /// True if a write could not be folded in.
        let isDirty: Bool
        /// The number of writes in it that are not delivered.
        let openCount: Int
        /// The number of items more than the server's representation has.
        var growth = 0
    }

    private struct Kept {
        let key: Key
        let version: Version
        let base: Base
        let representation: Representation
    }

    private struct State {
        var configurations = 0
        /// The last used one at the end.
        var kept: [Kept] = []
    }

    private static let limit = 8
    /// Maximum bytes of all representations together, without their bases, which are the cache's.
    private static let byteLimit = Int.mib(32)

    private let state = Mutex(State())

    /// Returns the present version.
    func version(commits: Int, notes: Int) -> Version {
        Version(commits: commits, notes: notes, configurations: state.withLock(\.configurations))
    }

    /// Returns the kept representation of a read; nil if there is none, or something has changed since it was made.
    func find(_ key: Key, at version: Version, over base: Base) -> Representation? {
        state.withLock { state in
            guard let index = state.kept.firstIndex(where: { $0.key == key }) else { return nil }
            let kept = state.kept.remove(at: index)
            guard kept.version == version, kept.base == base else { return nil }
            state.kept.append(kept)
            return kept.representation
        }
    }

    /// Keeps the representation of a read that was made of this version and this base.
    func keep(_ representation: Representation, of key: Key, at version: Version, over base: Base) {
        guard representation.body.readableBytes <= Self.byteLimit else { return }
        state.withLock { state in
            state.kept.removeAll { $0.key == key || $0.version != version }
            state.kept.append(Kept(key: key, version: version, base: base, representation: representation))
            var bytes = state.kept.reduce(0) { $0 + $1.representation.body.readableBytes }
            while bytes > Self.byteLimit || state.kept.count > Self.limit {
                bytes -= state.kept.removeFirst().representation.body.readableBytes
            }
        }
    }

    /// Drops everything, because another configuration is in force.
    func forget() {
        state.withLock {
            $0.configurations += 1
            $0.kept = []
        }
    }
}

extension FoldedReads.Representation {
    init(_ value: JSONValue, last: Int64, isDirty: Bool, writes: [FoldedWrite]) {
        self.init(
            body: ByteBuffer(bytes: value.serialized()), last: last, isDirty: isDirty, openCount: writes.count { !$0.isDelivered })
    }
}

/// Builds the input of folding from an operation: local ids are replaced by server ids where they are mapped (docs/outbox.md#reads,
/// docs/outbox.md#local-ids).
extension FoldedWrite {
    init(_ operation: QueuedWrite, action: String?, in data: DataStore) {
        let answer = operation.result.flatMap { result -> JSONValue? in
            guard operation.state == .delivered, [200, 201].contains(result.head.status), MediaType.isJSON(result.head.fields) else {
                return nil
            }
            return (try? JSONValue.parse(result.body)).flatMap { $0.object == nil ? nil : $0 }
        }
        self.init(
            operation.request, body: operation.body, sequence: operation.sequence, entityID: operation.entityID,
            isCreate: operation.isCreate, action: action, answer: answer, isDelivered: operation.state == .delivered, in: data)
        hasChosenKey = operation.isCreate && operation.localID == nil
        isCollectionWide = !operation.isCreate && operation.entityID == nil
        madeAt = UUIDv7.moment(of: operation.id)
    }

    /// A write that is not stored yet and follows all stored ones.
    init(_ operation: QueuedWriteDraft, action: String?, in data: DataStore) {
        self.init(
            operation.request, body: operation.body, sequence: .max, entityID: operation.entityID, isCreate: operation.newItem != nil,
            action: action, answer: nil, isDelivered: false, in: data)
        hasChosenKey = operation.newItem != nil && operation.localID == nil
        madeAt = UUIDv7.moment(of: operation.id)
    }

    private init(
        _ request: RequestHead, body: OperationBody, sequence: Int64, entityID: String?, isCreate: Bool, action: String?,
        answer: JSONValue?, isDelivered: Bool, in data: DataStore
    ) {
        let local = entityID.flatMap { LocalID($0) }.flatMap { isCreate || data.localIDs.knows($0) ? $0 : nil }
        let mapped = local.flatMap { data.localIDs.mapping(of: $0) }
        let stored = try? data.content(of: body).bytes()
        var bytes = stored ?? []
        if !data.localIDs.isEmpty, LocalIDScan.mayOccur(head: request, body: bytes) {
            bytes = (try? data.localIDs.substituted(request, bytes).body) ?? bytes
        }
        self.init(
            sequence: sequence, method: request.method, isItem: !isCreate, id: mapped?.id.text ?? entityID,
            idIsNumber: mapped?.id.isNumber ?? local?.isNumber ?? false, contentType: request.fields[.contentType], body: bytes,
            action: action, answer: answer, isDelivered: isDelivered)
        isUnreadable = stored == nil
    }
}
