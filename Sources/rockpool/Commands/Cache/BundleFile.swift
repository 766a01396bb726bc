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

    /// Nil: the target is stdout.
    private let file: NewFile?
    private let state = Mutex(State())

    /// Begins the file at `path`; `-` is stdout, but no terminal: the bodies are other people's text. Throws a failure with the reason if it
    /// cannot be written, or exists and is not to be replaced.
    init(writing path: String, replacing: Bool = false) throws(CommandFailure) {
        file = path == "-" ? nil : try NewFile(path, replacing: replacing)
        if file == nil, Display.output.isTerminal {
            throw CommandFailure(.usage, "a bundle is not for a terminal; name a file, or use a pipe")
        }
    }

    /// The entries and bytes written so far: `12 entries, 3.4 MB`.
    var written: String {
        let (entries, bytes) = state.withLock { ($0.entries, $0.bytes) }
        return "\(entries.counted("entry", "entries")), \(ForPeople.bytes(bytes))"
    }

    /// Writes the next bytes. Throws if the disk refuses them or they are not WARC.
    func write(_ bytes: UnsafeRawBufferPointer) throws {
        if let file { try file.write(bytes) } else { try FileHandle.standardOutput.write(bytes, named: "stdout") }
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
        try file?.finish()
    }

    /// Removes the temporary file.
    func discard() { file?.discard() }
}
