// Keys that are understood but do nothing yet: a start that uses one says so. Each line leaves with the feature it names.
import RockpoolCore

extension Configuration {
    /// What this configuration asks for in vain, one line each.
    var notBuiltYet: [String] {
        var asked: [String] = []
        if defaults.queueWrites { asked.append("defaults.queue_writes: writes to undeclared hosts are not queued; declare them") }
        return asked
    }
}
