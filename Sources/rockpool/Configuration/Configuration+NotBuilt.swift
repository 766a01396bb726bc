// Keys that are understood but do nothing yet: a start that uses one says so. Each line leaves with the feature it names.
import RockpoolCore

extension Configuration {
    /// What this configuration asks for in vain, one line each.
    var notBuiltYet: [String] {
        var asked: [String] = []
        if !proxy.intercept.isEmpty || defaults.intercept { asked.append("intercept: HTTPS is tunnelled, not decrypted") }
        if defaults.queueWrites { asked.append("defaults.queue_writes: writes to undeclared hosts are not queued; declare them") }
        for upstream in upstreams {
            let name = "upstream \(upstream.name)"
            if upstream.intercept { asked.append("\(name): intercept: HTTPS is tunnelled, not decrypted; use its gateway") }
        }
        return asked
    }
}
