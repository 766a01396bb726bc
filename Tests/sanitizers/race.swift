// The expected reports of the thread sanitizer: none for a value guarded by a contended Mutex, and a race for the unguarded `bare`.
import Synchronization

final class Counters: @unchecked Sendable {
    let lock = Mutex(())
    var guarded = 0
    var bare = 0
}

let counters = Counters()
let isGuarded = CommandLine.arguments.contains("guarded")
await withTaskGroup(of: Void.self) { group in
    for _ in 0..<4 {
        group.addTask {
            for _ in 0..<3_000_000 {
                if isGuarded { counters.lock.withLock { _ in counters.guarded += 1 } } else { counters.bare += 1 }
            }
        }
    }
}
print(counters.guarded, counters.bare)
