// Request bodies as libcurl reads them: from memory, a file or a stream; read again where the source allows it.
import Foundation
import Glibc
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

struct UploadTests {
    private func read(_ upload: inout Upload, _ room: Int = 4) -> (BodyPipe.Taken, String) {
        var target = [UInt8](repeating: 0, count: room)
        let taken = target.withUnsafeMutableBytes { upload.read(into: $0) }
        guard case .bytes(let count) = taken else { return (taken, "") }
        return (taken, String(decoding: target[..<count], as: UTF8.self))
    }

    @Test func noBody() {
        var upload = Upload(.none)
        #expect(!upload.hasBody && upload.length == 0 && upload.isExhausted)
        #expect(read(&upload).0 == .end)
    }

    @Test(arguments: [false, true])
    func bytesAndFilesAreReadInPartsAndAgain(isFile: Bool) throws {
        var upload = Upload(isFile ? .stored(Letters("abcdef"), length: 6) : .bytes(ByteBuffer(string: "abcdef")))
        #expect(upload.hasBody && upload.length == 6 && !upload.isExhausted)
        #expect(read(&upload) == (.bytes(4), "abcd"))
        #expect(!upload.isExhausted)
        #expect(read(&upload) == (.bytes(2), "ef"))
        #expect(upload.isExhausted)
        #expect(read(&upload).0 == .end)
        let isRewound = upload.rewind(to: 0, whence: SEEK_SET)
        #expect(isRewound && !upload.isExhausted)
        #expect(read(&upload) == (.bytes(4), "abcd"))
        let isRewoundFromEnd = upload.rewind(to: 0, whence: SEEK_END)
        #expect(!isRewoundFromEnd)
        upload.abandon()
    }

    @Test func aBodyThatCannotBeReadFailsWithItsReason() throws {
        var damaged = Upload(.stored(Letters("abcdef", isDamaged: true), length: 6))
        #expect(read(&damaged) == (.bytes(4), "abcd"))
        #expect(read(&damaged).0 == .failed && !damaged.isExhausted)
        #expect(damaged.failure?.kind == .damaged)
        // What was hashed from the start cannot be hashed from the middle.
        let isRewound = damaged.rewind(to: 2, whence: SEEK_SET)
        #expect(!isRewound)
    }

    /// A stored body, whose last bytes cannot be read if it is damaged.
    private struct Letters: BodyReader {
        let text: String
        let isDamaged: Bool
        var rest: Substring

        init(_ text: String, isDamaged: Bool = false) { (self.text, self.isDamaged, rest) = (text, isDamaged, text[...]) }

        mutating func next(_ count: Int) throws(TransferFailure) -> ByteBuffer {
            let piece = rest.prefix(count)
            rest = rest.dropFirst(count)
            if rest.isEmpty, isDamaged { throw TransferFailure(kind: .damaged, sent: .maybe) }
            return ByteBuffer(string: String(piece))
        }

        mutating func rewind() { rest = text[...] }
    }

    @Test func aStreamIsStarvedUntilItsClientSendsMore() {
        let pipe = BodyPipe()
        var upload = Upload(.stream(pipe, length: nil))
        #expect(upload.length == nil)
        #expect(read(&upload).0 == .empty && upload.isStarved)
        pipe.offer(ByteBuffer(string: "ab"))
        #expect(read(&upload) == (.bytes(2), "ab"))
        #expect(!upload.isStarved && !upload.isExhausted)
        pipe.finish()
        #expect(read(&upload).0 == .end && upload.isExhausted)
        let isRewound = upload.rewind(to: 0, whence: SEEK_SET)
        #expect(!isRewound, "a stream's bytes cannot be sent again")
    }

    @Test func aStreamOfKnownLengthIsExhaustedWithItsLastByte() {
        var upload = Upload(.stream(BodyPipe(whole: ByteBuffer(string: "abcd")), length: 4))
        #expect(read(&upload).0 == .bytes(4) && upload.isExhausted)
    }

    @Test func aStreamThatBreaksOffFails() {
        let pipe = BodyPipe()
        pipe.fail(TransferFailure(kind: .cancelled, sent: .no))
        var upload = Upload(.stream(pipe, length: nil))
        #expect(read(&upload).0 == .failed)
    }
}
