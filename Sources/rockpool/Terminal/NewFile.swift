// Files that a command reads or writes as a whole, and texts opened in the user's editor.
import Foundation

/// A file that is either complete or absent: written beside its target, readable by its owner only.
final class NewFile: Sendable {
    private let handle: FileHandle
    private let target: String
    /// The file beside it that is written.
    let path: String
    private let isReplacing: Bool

    /// - Throws: a failure if the file exists and may not be replaced, or if it cannot be made.
    init(_ path: String, replacing: Bool) throws(CommandFailure) {
        (target, isReplacing, self.path) = (path, replacing, "\(path).part-\(getpid())")
        guard replacing || access(path, F_OK) != 0 else { throw .isThere(path) }
        let descriptor = open(self.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw .cannotWrite(to: path) }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Writes the next bytes. Throws a failure with the reason, such as a full disk.
    func write(_ bytes: UnsafeRawBufferPointer) throws(CommandFailure) { try handle.write(bytes, named: target) }

    /// Writes a text as UTF-8.
    func write(_ text: String) throws { try handle.write(text, named: target) }

    /// Renames the file to its final name; a file that was created meanwhile is only replaced if `isReplacing`.
    func finish() throws(CommandFailure) {
        guard fsync(handle.fileDescriptor) == 0 else { throw .cannotWrite(to: target) }
        if isReplacing {
            guard rename(path, target) == 0 else { throw .cannotWrite(to: target) }
            return
        }
        guard link(path, target) == 0 else { throw .isThere(target) }
        unlink(path)
    }

    /// Removes the temporary file.
    func discard() { unlink(path) }
}

extension FileHandle {
    /// Writes all bytes. Throws a failure with the name of the file and the reason.
    func write(_ bytes: UnsafeRawBufferPointer, named name: String) throws(CommandFailure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = Foundation.write(fileDescriptor, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .cannotWrite(to: name) }
            rest = rest.dropFirst(count)
        }
    }

    /// Writes a text as UTF-8. Throws a failure with the name of the file and the reason.
    func write(_ text: String, named name: String) throws {
        try Array(text.utf8).withUnsafeBytes { try write($0, named: name) }
    }
}

extension CommandFailure {
    fileprivate static func isThere(_ path: String) -> CommandFailure {
        CommandFailure(.failed, "\(path) already exists; add --force to replace it".inOneLine)
    }

    /// The failure of the last system call on a file.
    static func cannotWrite(to path: String) -> CommandFailure {
        CommandFailure(.failed, "\(path) cannot be written: \(String(cString: strerror(errno)))".inOneLine)
    }
}

/// Reads a named file completely; `-` is stdin (POSIX.1-2024 §12.2, guideline 13).
enum InputFile {
    static func contents(of file: String) throws -> Data {
        if file == "-" { return try FileHandle.standardInput.readToEnd() ?? Data() }
        guard let contents = FileManager.default.contents(atPath: file) else {
            throw CommandFailure(.usage, "\(file) cannot be read".inOneLine)
        }
        return contents
    }
}

/// A temporary file that only its owner can read (POSIX.1-2024, environ(7)).
struct EditorFile {
    let path: String

    init(_ text: [UInt8], suffix: String) throws(CommandFailure) {
        var template = Array("\(FileManager.default.temporaryDirectory.path)/rockpool-XXXXXX\(suffix)".utf8CString)
        let descriptor = mkstemps(&template, Int32(suffix.utf8.count))
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        guard descriptor >= 0 else { throw CommandFailure(.failed, "\(path) cannot be created: \(String(cString: strerror(errno)))") }
        do {
            let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            try handle.write(contentsOf: Data(text))
            try handle.close()
        } catch {
            throw CommandFailure(.failed, "\(path) cannot be written: \(error)")
        }
    }

    /// Runs the editor in our own process group, as another group could not read the terminal.
    /// - Returns: the file's new contents; nil if it was removed.
    func edit() throws(CommandFailure) -> Data? {
        let environment = ProcessInfo.processInfo.environment
        let editor = [environment["VISUAL"], environment["EDITOR"]].compactMap { $0 }.first { !$0.isEmpty } ?? "vi"
        var arguments: [UnsafeMutablePointer<CChar>?] = []
        for word in ["sh", "-c", "exec \(editor) \"$1\"", "sh", path] { arguments.append(strdup(word)) }
        arguments.append(nil)
        defer { for argument in arguments { free(argument) } }
        var process: pid_t = 0
        var status: Int32 = 0
        guard posix_spawn(&process, "/bin/sh", nil, nil, &arguments, environ) == 0 else {
            throw CommandFailure(.failed, "\(editor) cannot be started".inOneLine)
        }
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else { throw CommandFailure(.failed, "\(editor) failed; nothing was sent, the text is in \(path)".inOneLine) }
        return FileManager.default.contents(atPath: path)
    }

    func remove() { unlink(path) }
}
