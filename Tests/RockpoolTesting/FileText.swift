// Reads the bytes of a file for comparisons in tests.
import Foundation

package enum FileText {
    /// Returns the bytes of the file; empty when there is no such file.
    package static func read(_ path: String) -> [UInt8] { FileManager.default.contents(atPath: path).map { Array($0) } ?? [] }
}
