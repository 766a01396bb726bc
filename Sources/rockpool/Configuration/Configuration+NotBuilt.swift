// Keys that are understood but do nothing yet: a start that uses one says so. Each line leaves with the feature it names.
import RockpoolCore

extension Configuration {
    /// What this configuration asks for in vain, one line each.
    var notBuiltYet: [String] {
        var asked: [String] = []
        if !proxy.intercept.isEmpty || defaults.intercept { asked.append("intercept: HTTPS is tunnelled, not decrypted") }
        for upstream in upstreams {
            let name = "upstream \(upstream.name)"
            if upstream.intercept { asked.append("\(name): intercept: HTTPS is tunnelled, not decrypted; use its gateway") }
            if upstream.queue.credentials == .sealed { asked.append("\(name): credentials: sealed: they stay in memory") }
            if upstream.queue.squash == .safe { asked.append("\(name): squash: safe: every write is sent") }
            for resource in upstream.resources {
                if resource.offlineResponse == .optimistic { asked.append("\(name): optimistic: queued writes are answered 202") }
                if resource.delta != nil { asked.append("\(name): delta: nothing is pulled") }
            }
        }
        return asked
    }
}
