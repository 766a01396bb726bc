// Interruptions of the process.
import Dispatch
import Foundation
import Glibc

/// Waits for an interrupt from the terminal.
enum Interruption {
    /// Returns at SIGINT or SIGTERM.
    static func wait() async {
        for number in [SIGINT, SIGTERM] { signal(number, SIG_IGN) }
        let sources = [SIGINT, SIGTERM].map { DispatchSource.makeSignalSource(signal: $0, queue: .global()) }
        let (interruptions, feed) = AsyncStream.makeStream(of: Void.self)
        for source in sources {
            source.setEventHandler { feed.yield() }
            source.resume()
        }
        var iterator = interruptions.makeAsyncIterator()
        await iterator.next()
        sources.forEach { $0.cancel() }
    }
}
