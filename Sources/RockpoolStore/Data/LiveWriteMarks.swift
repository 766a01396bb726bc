// The slots of live writes that are under way, and the marks of those that have ended (docs/outbox.md#live-writes).
import Glibc
import RockpoolCore
import Synchronization

/// The record of one live write that is under way.
package struct LiveWriteTrace: Hashable, Sendable {
    /// The key of its row, or its slot of the file; used again when the record is gone.
    let slot: Int64
    /// Names this use of the slot.
    let token: Int64
    /// True if its row may name a blob.
    var hasBlob = true
    /// True if the record is in the file `live-writes`, and no row.
    var isInFile = false
}

/// Writes the file `live-ended` of the state directory: for each slot the token of the live write that has ended last.
///
/// A row is deleted with a later commit. Until then the mark says that its write has ended: one small write into the file, without a sync,
/// which survives the kill of the process but perhaps not a power failure.
final class LiveWriteMarks: Sendable {
    private struct State {
        /// Number of slots in use or in `free`.
        var count: Int64 = 0
        var free: [Int64] = []
        var underWay: Set<LiveWriteTrace> = []
        /// Ended, with their rows still to be deleted.
        var ended: [LiveWriteTrace] = []
        var isDeletionDue = false
        /// The token of the next use of a slot: those of a run follow each other from a random one on.
        var token = Int64.random(in: .min ... .max)
    }

    /// Preallocated bytes: a full disk must not prevent a mark.
    private static let room = Int64.kib(8)

    /// The marks of the last run.
    let earlier: EndedLiveWrites
    private let descriptor: CInt
    private let state = Mutex(State())

    init(directory: String) {
        earlier = EndedLiveWrites(directory: directory)
        descriptor = unsafe Glibc.open(EndedLiveWrites.path(directory), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        if descriptor >= 0 { posix_fallocate(descriptor, 0, off_t(Self.room)) }
    }

    deinit {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
    }

    /// Takes a slot for a live write.
    func begin(hasBlob: Bool) -> LiveWriteTrace {
        state.withLock { state in
            let slot = state.free.popLast() ?? state.count
            state.count = max(state.count, slot + 1)
            state.token &+= 1
            let trace = LiveWriteTrace(slot: slot, token: state.token, hasBlob: hasBlob)
            state.underWay.insert(trace)
            return trace
        }
    }

    /// Marks a live write as ended; no effect if it has ended before.
    /// - Returns: true if the caller must see to the deletion of the rows (`takeEnded`).
    func end(_ trace: LiveWriteTrace) -> Bool {
        guard state.withLock({ $0.underWay.remove(trace) }) != nil else { return false }
        // Before another write can take the slot.
        write(trace)
        return state.withLock { state in
            state.ended.append(trace)
            defer { state.isDeletionDue = true }
            return !state.isDeletionDue
        }
    }

    private func write(_ trace: LiveWriteTrace) {
        let (mark, place) = (EndedLiveWrites.mark(trace.token), off_t(trace.slot) * off_t(EndedLiveWrites.size))
        _ = unsafe mark.withUnsafeBytes { unsafe pwrite(descriptor, $0.baseAddress, $0.count, place) }
    }

    /// Takes over the deletion of the rows of ended live writes. Afterwards `free` or `keep` must be called with them.
    func takeEnded() -> [LiveWriteTrace] {
        state.withLock { state in
            defer { state.ended = [] }
            return state.ended
        }
    }

    /// Returns the ended live writes as `takeEnded`, at the end of the time after which their rows are deleted at the latest.
    func takeDue() -> [LiveWriteTrace] {
        state.withLock { $0.isDeletionDue = false }
        return takeEnded()
    }

    /// The rows could not be deleted.
    func keep(_ ended: [LiveWriteTrace]) {
        guard !ended.isEmpty else { return }
        state.withLock { $0.ended += ended }
    }

    /// The rows are deleted: their slots may be used again.
    func free(_ gone: [LiveWriteTrace]) {
        guard !gone.isEmpty else { return }
        state.withLock { state in
            state.underWay.subtract(gone)
            state.free += gone.map(\.slot)
        }
    }
}

/// The content of the file `live-ended`, as it was found: the marks that an earlier run has left of live writes that ended while their rows
/// were still there (docs/outbox.md#live-writes).
struct EndedLiveWrites: Sendable {
    /// Bytes of a mark: the token that was in the slot last.
    static let size = 8

    private let bytes: [UInt8]

    static func path(_ directory: String) -> String { "\(directory)/live-ended" }

    /// Reads the file of a state directory; a file that cannot be read has no marks.
    init(directory: String) {
        bytes = (try? FileBytes.read(Self.path(directory))) ?? []
    }

    /// True if this live write had ended.
    func contains(_ trace: LiveWriteTrace) -> Bool {
        let (start, overflow) = Int(clamping: trace.slot).multipliedReportingOverflow(by: Self.size)
        guard !overflow, start >= 0, start <= bytes.count - Self.size else { return false }
        return Array(bytes[start..<start + Self.size]) == Self.mark(trace.token)
    }

    static func mark(_ token: Int64) -> [UInt8] {
        let bits = UInt64(bitPattern: token)
        return (0..<UInt64(size)).map { UInt8(truncatingIfNeeded: bits >> ($0 * 8)) }
    }
}
