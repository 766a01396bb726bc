// How much of its replies an HTTP/2 client has not taken, whether it still takes any, and how far a file is read ahead of it
// (RFC 9113 §5.2; security.md §4, *slow clients*).
import NIOCore

/// The unsent bytes of all streams of one connection: DATA that waits for a window of the client, or for its socket.
struct UnsentBytes {
    /// Bytes that the streams of one connection share for pieces of files; beyond it a piece is the least.
    static let limit = 2 * 1024 * 1024
    /// Bytes of the first piece of a file, before it is known that the client takes any: all that a stream without a window costs.
    static let least = 4 * 1024
    /// Bytes of a frame (RFC 9113 §6.5.2, SETTINGS_MAX_FRAME_SIZE): the share of each stream where there are many.
    static let frame = 16 * 1024
    /// Bytes of the largest piece.
    static let most = 64 * 1024

    /// How long a client may take nothing.
    let patience: TimeAmount
    /// Unsent bytes of all streams.
    private(set) var bytes = 0
    /// Open streams.
    private(set) var streams = 0
    /// Streams that have unsent bytes.
    private(set) var blocked = 0
    /// When the client last took a byte, or the first stream of all began to wait.
    private var takenAt = NIODeadline.distantPast

    init(patience: TimeAmount) { self.patience = patience }

    mutating func open() { streams += 1 }

    mutating func close() { streams -= 1 }

    /// A stream has `count` bytes to send.
    /// - Parameter before: its unsent bytes until now.
    mutating func add(_ count: Int, to before: Int, now: NIODeadline) {
        bytes += count
        guard before == 0 else { return }
        if blocked == 0 { takenAt = now }
        blocked += 1
    }

    /// The client has taken `count` bytes of a stream.
    /// - Parameter rest: the unsent bytes of the stream from now on.
    mutating func take(_ count: Int, leaving rest: Int, now: NIODeadline) {
        drop(count, leaving: rest)
        takenAt = now
    }

    /// `count` bytes of a stream will never be sent: it has been reset, or the connection has ended.
    mutating func drop(_ count: Int, leaving rest: Int) {
        bytes -= count
        if rest == 0 { blocked -= 1 }
    }

    /// Whether every open stream has unsent bytes and the client has taken none of any for `patience`. A new stream does not buy time.
    func isStuck(at now: NIODeadline) -> Bool { blocked > 0 && blocked >= streams && now >= takenAt + patience }

    /// Bytes of the next piece of a file. No more is read for a stream than its client has taken of it already, so that those who take
    /// nothing cost the least.
    /// - Parameters:
    ///   - taken: bytes of the file that the client has taken.
    ///   - isScarce: whether all connections together have more unsent than the process allows them.
    func piece(after taken: Int64, isScarce: Bool) -> Int {
        let share = isScarce || bytes > Self.limit ? Self.least : max(Self.frame, min(Self.most, Self.limit / max(1, streams)))
        return Int(min(Int64(share), max(Int64(Self.least), taken)))
    }
}
