// The error of an invalid configuration.
import RockpoolCore

/// All problems of a configuration, in the order of its lines; never empty.
struct ConfigurationError: Error, Hashable, CustomStringConvertible {
    var problems: [Problem]
    /// The consent that would make the file usable; nil if none is needed, or if it would not be enough.
    var consent: ConsentRequest?
    /// The format of the log that the configuration names, as far as it was read.
    var logFormat = LogFormat.text

    var description: String { problems.map(\.description).joined(separator: "\n") }
}
