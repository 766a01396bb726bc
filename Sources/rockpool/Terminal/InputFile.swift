// Reads a named file completely; `-` is stdin (POSIX.1-2024 §12.2, guideline 13).
import Foundation

enum InputFile {
    static func contents(of file: String) throws -> Data {
        if file == "-" { return try FileHandle.standardInput.readToEnd() ?? Data() }
        guard let contents = FileManager.default.contents(atPath: file) else {
            throw CommandFailure(.usage, "\(file) cannot be read".inOneLine)
        }
        return contents
    }
}
