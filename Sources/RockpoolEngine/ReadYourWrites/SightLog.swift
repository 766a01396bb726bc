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
    }

    private let path: String
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

    /// Writes the file anew, and keeps it open.
    func begin(with records: [Sight.Record]) {
        state.withLock { state in
            state.file = replace(by: records, isWhole: false)
            state.waiting = []
            state.length = Int((try? state.file?.offset()) ?? 0)
            state.least = state.length
        }
    }

    /// Writes the file anew at a clean stop: nothing is under way any more.
    func end(with records: [Sight.Record]) {
        state.withLock { state in
            state.file = replace(by: records, isWhole: true)
            try? state.file?.synchronize()
            state.file = nil
        }
    }

    /// Appends a note. That of a write is in the file when this returns.
    /// - Returns: true if `begin` should be called, because the file has become long.
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
            return state.length > max(Self.limit, state.least * 2)
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
        state.waiting = []
    }

    private func replace(by records: [Sight.Record], isWhole: Bool) -> FileHandle? {
        var bytes = Self.head(isWhole: isWhole).serialized() + [UInt8(ascii: "\n")]
        for record in records { bytes += record.json.serialized() + [UInt8(ascii: "\n")] }
        let new = path + ".new"
        try? FileManager.default.removeItem(atPath: new)
        guard FileManager.default.createFile(atPath: new, contents: Data(bytes), attributes: [.posixPermissions: 0o600]),
            unsafe rename(new, path) == 0, let file = FileHandle(forWritingAtPath: path), (try? file.seekToEnd()) != nil
        else {
            // An older file would not be in order.
            try? FileManager.default.removeItem(atPath: path)
            return nil
        }
        return file
    }

    /// The first line. A file that was not ended counts for as long as the machine runs.
    private static func head(isWhole: Bool) -> JSONValue {
        let boot = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
        return ["rockpool sight 1", .string(isWhole ? "" : boot)]
    }
}
