// Path of the program under test: the tests run the binary that is shipped.
import Foundation

/// The `rockpool` program.
package enum Binary {
    /// The path from `ROCKPOOL_BINARY`, or else the release build below the package's root.
    package static let path = ProcessInfo.processInfo.environment["ROCKPOOL_BINARY"] ?? packageRoot + "/.build/release/rockpool"

    private static let packageRoot = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
}
