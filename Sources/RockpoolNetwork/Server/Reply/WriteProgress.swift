// The progress of a client that reads its reply (docs/security-model.md#slow-clients).
import NIOCore
import RockpoolCore

/// Compares the unsent bytes of a channel with those at the client's last progress.
struct WriteProgress {
    /// The minimum progress in bytes per idle limit; a slower client is disconnected.
    private static let leastTaken = Int.kib(256)

    /// True for an HTTP/2 stream, whose progress is visible as writability after each received piece.
    let isStream: Bool
    /// The unsent bytes when the wait for the client began, or at its last progress.
    private var unsentBytes = 0

    init(isStream: Bool) { self.isStream = isStream }

    /// Begins a wait for the client.
    mutating func restart(on channel: any Channel) { unsentBytes = unsent(on: channel) }

    /// Returns true if the client has taken enough since the last progress, which is then the present one.
    mutating func advance(on channel: any Channel) -> Bool {
        let unsent = unsent(on: channel)
        guard unsent <= unsentBytes - Self.leastTaken else { return false }
        unsentBytes = unsent
        return true
    }

    /// Bytes written that the socket has not accepted yet. On the event loop only.
    private func unsent(on channel: any Channel) -> Int {
        isStream ? 0 : (try? channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }
}
