// A Python that has a library from Debian or PyPI; tests that need a library are skipped without it.
import Foundation

enum Python {
    /// Interpreters in the order in which they are tried: that of `make programs`, the first in the path, the system's.
    private static let candidates = [
        ProcessInfo.processInfo.environment["ROCKPOOL_PYTHON"], "python3", "/usr/bin/python3",
    ].compactMap { $0 }

    /// Returns the first interpreter that has all of these modules; nil if there is none.
    static func with(_ modules: String...) -> String? {
        candidates.first { interpreter in
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = [interpreter, "-c", "import " + modules.joined(separator: ", ")]
            (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
            guard (try? process.run()) != nil else { return false }
            process.waitUntilExit()
            return process.terminationStatus == 0
        }
    }
}
