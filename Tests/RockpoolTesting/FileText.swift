// Bytes of a file as a test compares them.
import Foundation

package enum FileText {
    /// Empty when there is no such file.
    package static func read(_ path: String) -> [UInt8] { FileManager.default.contents(atPath: path).map { Array($0) } ?? [] }
}
