// Levels of the log.
import ArgumentParser
import Logging

/// swift-log's levels, as written on the command line.
enum LogLevel: String, CaseIterable, ExpressibleByArgument {
    case trace, debug, info, notice, warning, error

    var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .notice }
}

extension Logger {
    init(label: String, level: Logger.Level) {
        self.init(label: label)
        logLevel = level
    }
}
