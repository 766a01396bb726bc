// A text opened in the user's editor: $VISUAL, $EDITOR, else vi (POSIX.1-2024, environ(7)).
import Foundation

/// A temporary file that only its owner can read.
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
