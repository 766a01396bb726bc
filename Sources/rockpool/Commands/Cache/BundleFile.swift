// The file of an export: written under a temporary name beside the target, validated while written, and renamed once complete.
import Foundation
import RockpoolCore
import Synchronization

/// The target of a bundle.
final class BundleFile: Sendable {
    private struct State {
        var reader = WARCReader()
        var isResponse = false
        var entries = 0
        var bytes: Int64 = 0
    }

    private let handle: FileHandle
    private let path: String?
    private let temporary: String
    private let state = Mutex(State())

    /// Opens a temporary file beside `path`; `-` is stdout. Throws a failure with the reason if it cannot be written.
    init(writing path: String) throws(CommandFailure) {
        temporary = "\(path).part-\(getpid())"
        guard path != "-" else {
            (self.path, handle) = (nil, .standardOutput)
            return
        }
        self.path = path
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .cannotWrite(to: path) }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// The entries and bytes written so far: `12 entries, 3.4 MB`.
    var written: String {
        let (entries, bytes) = state.withLock { ($0.entries, $0.bytes) }
        return "\(entries) \(entries == 1 ? "entry" : "entries"), \(ForPeople.bytes(bytes))"
    }

    /// Writes the next bytes. Throws if the disk refuses them or they are not WARC.
    func write(_ bytes: UnsafeRawBufferPointer) throws {
        try handle.write(contentsOf: Data(bytes))
        try state.withLock { state in
            var rest = Array(bytes)[...]
            while let event = try state.reader.next(in: &rest) {
                if case .head(let head) = event { state.isResponse = head.type == "response" }
                if case .end = event, state.isResponse { state.entries += 1 }
            }
            state.bytes += Int64(bytes.count)
        }
    }

    /// Renames the file to its final name. Throws if it is incomplete or cannot be written to the end.
    func finish() throws {
        try state.withLock { try $0.reader.finish() }
        guard let path else { return }
        try handle.synchronize()
        try handle.close()
        guard rename(temporary, path) == 0 else { throw CommandFailure.cannotWrite(to: path) }
    }

    /// Removes the temporary file.
    func discard() {
        if path != nil { unlink(temporary) }
    }
}

extension CommandFailure {
    fileprivate static func cannotWrite(to path: String) -> CommandFailure {
        CommandFailure(.failed, "\(path) cannot be written: \(String(cString: strerror(errno)))".inOneLine)
    }
}
