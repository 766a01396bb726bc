// The rate at which equal writes of one client are acknowledged (docs/outbox.md#floods).

/// Counts the acknowledgements of equal writes: a program that takes them for a failure repeats its write as fast as it can.
///
/// Memory is limited: of more than `capacity` different writes within the window, the oldest may be forgotten.
package struct AcknowledgementLimit: Sendable {
    /// Acknowledgements of equal writes of one client within `window`.
    package static let count = 20
    package static let window = TimeSpan.seconds(10)
    /// Different writes that are counted at least.
    package static let capacity = 2048

    /// The times of the acknowledgements that still count, by client and write, of this generation and of the one before.
    private var newer: [Int: [Timestamp]] = [:]
    private var older: [Int: [Timestamp]] = [:]
    private var began = Timestamp.distantPast

    package init() {}

    /// Counts one acknowledgement. Returns the time to wait instead where the limit is reached; then nothing is counted.
    /// - Parameters:
    ///   - write: the digest of method, URL and body.
    ///   - client: the principal, or the address of a client without a credential.
    package mutating func admit(_ write: [UInt8], of client: String, now: Timestamp) -> TimeSpan? {
        if newer.count >= Self.capacity || !Self.counts(began, now) { (older, newer, began) = (newer, [:], now) }
        var hasher = Hasher()
        hasher.combine(write)
        hasher.combine(client)
        let key = hasher.finalize()
        var times = (newer[key] ?? older[key] ?? []).filter { Self.counts($0, now) }
        if times.count >= Self.count, let first = times.first { return first + Self.window - now }
        times.append(now)
        newer[key] = times
        return nil
    }

    /// False also after the clock was set back.
    private static func counts(_ time: Timestamp, _ now: Timestamp) -> Bool { now >= time && now - time < window }
}
