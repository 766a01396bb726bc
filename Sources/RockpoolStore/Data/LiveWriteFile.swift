// The file `live-writes`: small live writes that are under way, each in a slot of its own (docs/outbox.md#live-writes).
import CZlib
import Dispatch
import GRDB
import Glibc
import RockpoolCore
import Synchronization

/// Records live writes without a transaction: all that wait are written, and synced together.
///
/// The file has a fixed size. Its first page holds for each slot the token of the write that ended last in it, so that an end is one small write
/// without a sync; the sync that makes new records durable takes the ends with it. A slot is used again at once after its end; what is left of
/// ended writes is overwritten within a second.
final class LiveWriteFile: Sendable {
    static let slotLength = Int.kib(4)
    static let slotCount = 128
    private static let length = slotLength * (slotCount + 1)
    /// The number of records in a group from which on more are expected in the next one, and the longest time for which it waits for them.
    private static let manyCount = 3
    private static let patience = Duration.milliseconds(1)
    /// Maximum bytes of a record's values.
    static let valuesLimit = slotLength - LiveWriteRecord.headLength

    private struct Waiting {
        let slot: Int
        let bytes: [UInt8]
        let answer: @Sendable (Bool) -> Void
    }

    private struct State {
        /// The slots that may be taken; the last one first.
        var free: [Int] = []
        /// For each slot the token of the write under way in it.
        var tokens = [Int64?](repeating: nil, count: LiveWriteFile.slotCount)
        /// For each slot whether it may hold bytes of a write.
        var isWritten = [Bool](repeating: false, count: LiveWriteFile.slotCount)
        var waiting: [Waiting] = []
        var isWriting = false
        /// The number of records in the last group.
        var company = 0
        var isClearingDue = false
        /// True after a failure: what it has lost cannot be known, and the file takes no more records.
        var isBroken = false
        /// The token of the last write: those of a run follow each other from a random one on.
        var token = Int64.random(in: 1 ... .max / 2)

        mutating func free(_ slots: [Int]) {
            if !isBroken { free += slots }
        }
    }

    /// The records of the writes that were under way when the last run ended.
    let interrupted: [LiveWriteRecord]
    /// The number of slots that hold something else: a record that was not written whole, or was damaged since.
    let damaged: Int
    private let descriptor: CInt
    /// False if the file has not its whole size.
    private let isWhole: Bool
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "rockpool.data.live")

    static func path(_ directory: String) -> String { "\(directory)/live-writes" }

    /// Opens the file, and creates it if it is not there. It takes no record before `begin`.
    init(directory: String) {
        let path = Self.path(directory)
        let isOther = FileStatus.of(path).map { !$0.isFile } ?? false
        let found = isOther ? [] : (try? FileBytes.read(path)) ?? []
        (interrupted, damaged) = Self.records(in: found)
        let descriptor = isOther ? -1 : unsafe Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        self.descriptor = descriptor
        // Written, not only allocated: a sync of bytes in place costs less than one that also changes where they are.
        let missing = [UInt8](repeating: 0, count: max(0, Self.length - found.count))
        isWhole = descriptor >= 0 && (missing.isEmpty || Self.write(missing, to: descriptor, at: found.count))
        if !isWhole, descriptor >= 0 { _ = ftruncate(descriptor, off_t(found.count)) }
    }

    deinit {
        if descriptor >= 0 { _ = Glibc.close(descriptor) }
    }

    private static func records(in bytes: [UInt8]) -> (interrupted: [LiveWriteRecord], damaged: Int) {
        var (interrupted, damaged): ([LiveWriteRecord], Int) = ([], 0)
        for start in stride(from: slotLength, to: max(slotLength, bytes.count), by: slotLength) {
            let (slot, mark) = (bytes[start..<min(start + slotLength, bytes.count)], (start / slotLength - 1) * 8)
            guard let record = LiveWriteRecord(slot) else {
                if slot.prefix(LiveWriteRecord.headLength).contains(where: { $0 != 0 }) { damaged += 1 }
                continue
            }
            if Array(bytes[mark..<mark + 8]) != EndedLiveWrites.mark(record.token) { interrupted.append(record) }
        }
        return (interrupted, damaged)
    }

    /// Empties the slots, and takes records from now on. Call it once, when what was interrupted is kept elsewhere.
    func begin() {
        guard isWhole, clear(Array(0..<Self.slotCount)) else { return }
        state.withLock { $0.free(Array((0..<Self.slotCount).reversed())) }
    }

    /// Records a write; when `answer` is called with true, the record survives a power failure.
    /// - Parameter answer: called once, on any thread, with the record; with false if the file could not be written.
    /// - Returns: false if the values are too long, or no slot is free. Then `answer` is not called.
    func record(_ values: [UInt8], answer: @escaping @Sendable (LiveWriteTrace, Bool) -> Void) -> Bool {
        guard values.count <= Self.valuesLimit else { return false }
        let begins: Bool? = state.withLock { state -> Bool? in
            guard let slot = state.free.popLast() else { return nil }
            state.token += 1
            (state.tokens[slot], state.isWritten[slot]) = (state.token, true)
            let trace = LiveWriteTrace(slot: Int64(slot), token: state.token, hasBlob: false, isInFile: true)
            let bytes = LiveWriteRecord(token: state.token, values: values).bytes
            state.waiting.append(Waiting(slot: slot, bytes: bytes) { answer(trace, $0) })
            defer { state.isWriting = true }
            return !state.isWriting
        }
        if begins == true { queue.async { self.writeWaiting() } }
        return begins != nil
    }

    private func writeWaiting() {
        while true {
            gather()
            let group: [Waiting] = state.withLock { state in
                defer { state.waiting = [] }
                state.isWriting = !state.waiting.isEmpty
                if state.isWriting { state.company = state.waiting.count }
                return state.waiting
            }
            if group.isEmpty { return }
            let isDone =
                group.allSatisfy { Self.write($0.bytes, to: descriptor, at: Self.place($0.slot)) } && fdatasync(descriptor) == 0
            if !isDone { state.withLock { ($0.isBroken, $0.free) = (true, []) } }
            for one in group { one.answer(isDone) }
        }
    }

    /// Where several wait at a time, waits a moment for more of them: a sync costs as much for all as for one.
    private func gather() {
        let end = ContinuousClock.now + Self.patience
        while state.withLock({ $0.company >= Self.manyCount && !$0.waiting.isEmpty && $0.waiting.count < 2 * $0.company }),
            ContinuousClock.now < end
        {
            usleep(200)
        }
    }

    /// Marks a write as ended: after this no kill of the process makes it uncertain. No effect if it has ended before.
    /// - Returns: true if the caller must see to `clearEnded`.
    func end(_ trace: LiveWriteTrace) -> Bool {
        let slot = Int(trace.slot)
        return state.withLock { state in
            guard state.tokens[slot] == trace.token else { return false }
            // Before another write can take the slot.
            _ = Self.write(EndedLiveWrites.mark(trace.token), to: descriptor, at: slot * 8)
            state.tokens[slot] = nil
            state.free([slot])
            defer { state.isClearingDue = true }
            return !state.isClearingDue
        }
    }

    /// Overwrites what is left of ended writes.
    func clearEnded() async {
        let ended: [Int] = state.withLock { state in
            state.isClearingDue = false
            let ended = state.free.filter { state.isWritten[$0] }
            state.free.removeAll { state.isWritten[$0] }
            return ended
        }
        guard !ended.isEmpty else { return }
        await withCheckedContinuation { continuation in
            queue.async {
                let isCleared = self.clear(ended)
                self.state.withLock { state in
                    for slot in ended { state.isWritten[slot] = !isCleared }
                    state.free(ended)
                }
                continuation.resume()
            }
        }
    }

    private func clear(_ slots: [Int]) -> Bool {
        let zeros = [UInt8](repeating: 0, count: Self.slotLength)
        return slots.allSatisfy { Self.write(zeros, to: descriptor, at: Self.place($0)) } && fdatasync(descriptor) == 0
    }

    // MARK: - Calls

    private static func place(_ slot: Int) -> Int { (slot + 1) * slotLength }

    private static func write(_ bytes: [UInt8], to descriptor: CInt, at place: Int) -> Bool {
        unsafe bytes.withUnsafeBytes { buffer in
            var done = 0
            while done < buffer.count {
                let rest = unsafe UnsafeRawBufferPointer(rebasing: buffer[done...])
                let count = unsafe pwrite(descriptor, rest.baseAddress, rest.count, off_t(place + done))
                guard count > 0 || errno == EINTR else { return false }
                done += max(0, count)
            }
            return true
        }
    }
}

/// The content of one slot: `magic | length | CRC-32 | token | values`, numbers little-endian. The checksum is over the token and the values;
/// a slot that was not written whole has no record.
struct LiveWriteRecord: Equatable, Sendable {
    private static let magic: UInt32 = 0x3177_6C52
    /// Bytes before the values.
    static let headLength = 20

    /// Names this use of the slot.
    let token: Int64
    /// The values of its row, sealed as `storage.encrypt` demands.
    let values: [UInt8]

    init(token: Int64, values: [UInt8]) { (self.token, self.values) = (token, values) }

    /// - Returns: nil if the slot holds no whole record.
    init?(_ slot: ArraySlice<UInt8>) {
        func number(at place: Int, of count: Int) -> UInt64 {
            (0..<count).reduce(0) { $0 | UInt64(slot[slot.startIndex + place + $1]) << UInt64(8 * $1) }
        }
        guard slot.count >= Self.headLength, number(at: 0, of: 4) == UInt64(Self.magic) else { return nil }
        let length = Int(number(at: 4, of: 4))
        guard length <= slot.count - Self.headLength else { return nil }
        token = Int64(bitPattern: number(at: 12, of: 8))
        values = Array(slot.dropFirst(Self.headLength).prefix(length))
        guard Self.checksum(token, values) == UInt32(truncatingIfNeeded: number(at: 8, of: 4)) else { return nil }
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.headLength + values.count)
        for number in [Self.magic, UInt32(values.count), Self.checksum(token, values)] {
            unsafe withUnsafeBytes(of: number.littleEndian) { unsafe bytes.append(contentsOf: $0) }
        }
        unsafe withUnsafeBytes(of: token.littleEndian) { unsafe bytes.append(contentsOf: $0) }
        bytes += values
        return bytes
    }

    private static func checksum(_ token: Int64, _ values: [UInt8]) -> UInt32 {
        let head = unsafe withUnsafeBytes(of: token.littleEndian) { bytes in
            unsafe crc32(0, bytes.bindMemory(to: UInt8.self).baseAddress, uInt(bytes.count))
        }
        return UInt32(truncatingIfNeeded: unsafe values.withUnsafeBufferPointer { unsafe crc32(head, $0.baseAddress, uInt($0.count)) })
    }
}
