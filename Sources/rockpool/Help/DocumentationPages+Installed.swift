// The documentation that came with the running program.
import Foundation
import RockpoolAdmin

extension DocumentationPages {
    /// Nil if none is installed beside the program.
    static var installed: Self? {
        let program = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return Self(besides: program ?? CommandLine.arguments[0])
    }
}
