// Where the program under test is: what is tested is what is shipped.
import Foundation

/// The `rockpool` program.
package enum Binary {
    /// `ROCKPOOL_BINARY`, else the release build below the package's root.
    package static let path = ProcessInfo.processInfo.environment["ROCKPOOL_BINARY"] ?? packageRoot + "/.build/release/rockpool"

    private static let packageRoot = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
}
