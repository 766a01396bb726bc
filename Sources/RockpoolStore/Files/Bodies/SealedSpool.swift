// A body that is sealed while it comes: whole chunks are in the file, the bytes after them in memory (`storage.encrypt`).
import NIOCore

/// The state of a sealed temporary file; the file itself is its owner's.
struct SealedSpool: Sendable {
    private let chunks: SealedChunks
    /// Whole chunks in the file.
    private var written: Int64 = 0
    /// The bytes after the last whole chunk; they stay readable here after `finish`.
    private var rest: [UInt8] = []
    private var isFinished = false

    init(_ seal: BodySeal) { chunks = SealedChunks(seal) }

    /// The first bytes of the file.
    var header: [UInt8] { chunks.header }

    /// Takes the next bytes of the body.
    mutating func append(_ bytes: UnsafeRawBufferPointer, write: ([UInt8]) throws -> Void) throws {
        unsafe rest += bytes
        var taken = 0
        while rest.count - taken >= SealedChunks.chunk {
            try write(try chunks.seal(Array(rest[taken..<taken + SealedChunks.chunk]), number: written))
            written += 1
            taken += SealedChunks.chunk
        }
        rest.removeFirst(taken)
    }

    /// Writes the last, shorter chunk. Nothing happens the second time.
    mutating func finish(write: ([UInt8]) throws -> Void) throws {
        guard !isFinished else { return }
        isFinished = true
        if !rest.isEmpty { try write(try chunks.seal(rest, number: written)) }
    }

    /// Bytes of the body that were appended before.
    /// - Parameter read: gives bytes of the file.
    func read(_ range: Range<Int64>, read: (_ offset: Int64, _ count: Int) throws -> ByteBuffer) throws -> ByteBuffer {
        let start = written * Int64(SealedChunks.chunk)
        var bytes = try chunks.read(range.clamped(to: 0..<start), of: start, read)
        let wanted = range.clamped(to: start..<start + Int64(rest.count))
        bytes.writeBytes(rest[Int(wanted.lowerBound - start)..<Int(wanted.upperBound - start)])
        return bytes
    }
}
