// A configuration and its warnings.
import RockpoolCore

/// A configuration, with the sources of its values and the warnings about it.
struct LoadedConfiguration: Sendable {
    var configuration: Configuration
    /// The file that was read; nil without one.
    var file: String?
    /// The source of each key that was set; every other key has its default.
    var places: [String: Place]
    /// Warnings for stderr: unknown variables and probable mistakes.
    var warnings: [String]
    /// True if the file was found in the working directory.
    var isFound = false
}
