// What clients have been shown, over a restart (docs/outbox.md#sight): a file in the cache directory.
import Dispatch
import Foundation
import RockpoolCore
import Synchronization

/// A file of notes, one JSON value a line. It may be lost, and must never be older than what its clients were told: the end of a write is in
/// it before the client gets the answer, and everything in the order in which it happened. After the machine itself has stopped without
/// notice that is not known, and the file does not count.
final class SightLog: Sendable {
    /// Bytes beyond which the file is written anew.
    private static let limit = Int.mib(4)
    /// How long the note of something shown may wait to be written.
    private static let delay = DispatchTimeInterval.milliseconds(200)

    private struct State {
        var file: FileHandle?
        var waiting: [UInt8] = []
        var isDue = false
        var length = 0
        /// The length after it was written anew.
        var least = 0
        /// What was appended since `shorten` began to write the file anew; nil while it does not.
        var late: [UInt8]?
    }

    private let path: String
    private var new: String { path + ".new" }
    private let queue = DispatchQueue(label: "rockpool.sight")
    private let state = Mutex(State())

    /// - Parameter directory: that of the cache.
    init(in directory: String) { path = "\(directory)/sight.log" }

    /// Returns what the last run has left; nothing if it is not known to be whole.
    func read() -> [Sight.Record] {
        guard let data = FileManager.default.contents(atPath: path) else { return [] }
        var lines = data.split(separator: UInt8(ascii: "\n"))
        guard !lines.isEmpty, let head = try? JSONValue.parse(Array(lines.removeFirst())),
            head == Self.head(isWhole: true) || head == Self.head(isWhole: false)
        else { return [] }
        // The last line may be torn.
        return lines.compactMap { (try? JSONValue.parse(Array($0))).flatMap { Sight.Record(json: $0) } }
    }

    /// Writes the file anew at a start, and keeps it open.
    func begin(with records: [Sight.Record]) {
        state.withLock { state in
            state.waiting = []
            take(replacement(of: records, isWhole: false), with: [], in: &state)
        }
    }

    /// Begins to write the file anew, because it has become long. Until that is done, notes go to the old file and to the new one.
    /// - Parameter sight: everything that is known, with the last note that was appended.
    func shorten(to sight: Sight) {
        let isFirst = state.withLock { state in
            guard state.late == nil, state.file != nil else { return false }
            Self.write(&state)
            state.late = []
            return true
        }
        guard isFirst else { return }
        queue.async { [self] in
            let file = replacement(of: sight.records, isWhole: false)
            state.withLock { state in
                Self.write(&state)
                let late = state.late ?? []
                state.late = nil
                // The old file has met an error: what is in the new one is not known to be whole.
                guard state.file != nil else { return }
                take(file, with: late, in: &state)
            }
        }
    }

    /// Writes the file anew at a clean stop: nothing is under way any more.
    func end(with records: [Sight.Record]) {
        queue.sync {}
        state.withLock { state in
            state.waiting = []
            take(replacement(of: records, isWhole: true), with: [], in: &state)
            try? state.file?.synchronize()
            state.file = nil
        }
    }

    /// Appends a note. That of a write is in the file when this returns.
    /// - Returns: true if `shorten` should be called, because the file has become long.
    func append(_ record: Sight.Record) -> Bool {
        state.withLock { state in
            guard state.file != nil else { return false }
            state.waiting += record.json.serialized() + [UInt8(ascii: "\n")]
            if case .written = record {
                Self.write(&state)
            } else if !state.isDue {
                state.isDue = true
                queue.asyncAfter(deadline: .now() + Self.delay) { [self] in
                    self.state.withLock {
                        $0.isDue = false
                        Self.write(&$0)
                    }
                }
            }
            return state.late == nil && state.length > max(Self.limit, state.least * 2)
        }
    }

    private static func write(_ state: inout State) {
        guard let file = state.file, !state.waiting.isEmpty else { return }
        do { try file.write(contentsOf: state.waiting) } catch {
            // What follows would not be in order: without it nothing counts.
            state.file = nil
            try? file.truncate(atOffset: 0)
        }
        state.length += state.waiting.count
        state.late? += state.waiting
        state.waiting = []
    }

    /// Writes records to a new file beside the file. Returns nil if it cannot be written.
    private func replacement(of records: [Sight.Record], isWhole: Bool) -> FileHandle? {
        var bytes = Self.head(isWhole: isWhole).serialized() + [UInt8(ascii: "\n")]
        for record in records { bytes += record.json.serialized() + [UInt8(ascii: "\n")] }
        try? FileManager.default.removeItem(atPath: new)
        guard FileManager.default.createFile(atPath: new, contents: Data(bytes), attributes: [.posixPermissions: 0o600]),
            let file = FileHandle(forWritingAtPath: new), (try? file.seekToEnd()) != nil
        else { return nil }
        return file
    }

    /// Puts a new file in the place of the old one, with what came since it was made.
    private func take(_ file: FileHandle?, with late: [UInt8], in state: inout State) {
        guard let file, (try? file.write(contentsOf: late)) != nil, unsafe rename(new, path) == 0 else {
            // An older file would not be in order.
            try? FileManager.default.removeItem(atPath: path)
            state.file = nil
            return
        }
        state.file = file
        state.length = Int((try? file.offset()) ?? 0)
        state.least = state.length
    }

    /// The first line. A file that was not ended counts for as long as the machine runs.
    private static func head(isWhole: Bool) -> JSONValue {
        let boot = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
        return ["rockpool sight 1", .string(isWhole ? "" : boot)]
    }
}
