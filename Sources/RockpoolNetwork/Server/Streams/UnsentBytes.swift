// The unsent reply bytes of an HTTP/2 client, the detection of a stuck client, and the read-ahead size for files
// (RFC 9113 §5.2; docs/security-model.md#stalled-readers).
import NIOCore
import RockpoolCore

/// The unsent bytes of all streams of one connection: DATA that waits for the client's flow-control window, or for its socket.
struct UnsentBytes {
    /// The budget in bytes that the streams of one connection share for pieces of files; above it, pieces have the smallest size.
    static let limit = Int.mib(2)
    /// Bytes of the first piece of a file, before the client has received any: the whole cost of a stream without a window.
    static let least = Int.kib(4)
    /// Bytes of a frame (RFC 9113 §6.5.2, SETTINGS_MAX_FRAME_SIZE): the share of each stream where there are many.
    static let frame = Int.kib(16)
    /// Bytes of the largest piece.
    static let most = Int.kib(64)

    /// The longest time a client may receive nothing.
    let patience: TimeAmount
    /// Unsent bytes of all streams.
    private(set) var bytes = 0
    /// The number of open streams.
    private(set) var streams = 0
    /// The number of streams with unsent bytes.
    private(set) var blocked = 0
    /// The time when the client last received data, or when the first stream began to wait.
    private var takenAt = NIODeadline.distantPast

    init(patience: TimeAmount) { self.patience = patience }

    mutating func open() { streams += 1 }

    mutating func close() { streams -= 1 }

    /// Adds `count` bytes to send on a stream.
    /// - Parameter before: the stream's unsent bytes before this call.
    mutating func add(_ count: Int, to before: Int, now: NIODeadline) {
        bytes += count
        guard before == 0 else { return }
        if blocked == 0 { takenAt = now }
        blocked += 1
    }

    /// Records that the client has received `count` bytes of a stream.
    /// - Parameter rest: the stream's unsent bytes after this call.
    mutating func take(_ count: Int, leaving rest: Int, now: NIODeadline) {
        drop(count, leaving: rest)
        received(now: now)
    }

    /// Records that the client has received something that was not counted here: a reply that was sent whole.
    mutating func received(now: NIODeadline) { takenAt = now }

    /// Discards `count` bytes of a stream that will never be sent: the stream was reset, or the connection has ended.
    mutating func drop(_ count: Int, leaving rest: Int) {
        bytes -= count
        if rest == 0 { blocked -= 1 }
    }

    /// True if every open stream has unsent bytes and the client has received nothing on any for `patience`. A new stream does not reset
    /// the time.
    func isStuck(at now: NIODeadline) -> Bool { blocked > 0 && blocked >= streams && now >= takenAt + patience }

    /// Returns the size of the next piece of a file. A piece is at most as large as the part that the client has already received, so that
    /// stalled clients cost the least.
    /// - Parameters:
    ///   - taken: bytes of the file that the client has received.
    ///   - isScarce: true if the client has more in memory than its share.
    func piece(after taken: Int64, isScarce: Bool) -> Int {
        let share = isScarce || bytes > Self.limit ? Self.least : max(Self.frame, min(Self.most, Self.limit / max(1, streams)))
        return Int(min(Int64(share), max(Int64(Self.least), taken)))
    }
}
