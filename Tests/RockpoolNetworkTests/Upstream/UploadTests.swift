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

    private func file(_ text: String) throws -> String {
        let path = "\(NSTemporaryDirectory())rockpool-upload-\(UUID().uuidString)"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test func noBody() {
        var upload = Upload(.none)
        #expect(!upload.hasBody && upload.length == 0 && upload.isExhausted)
        #expect(read(&upload).0 == .end)
    }

    @Test(arguments: [false, true])
    func bytesAndFilesAreReadInPartsAndAgain(isFile: Bool) throws {
        let path = try file("abcdef")
        defer { unlink(path) }
        var upload = Upload(isFile ? .file(path: path, length: 6) : .bytes(ByteBuffer(string: "abcdef")))
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

    @Test func aFileThatIsGoneOrShorterThanItShouldBeFails() throws {
        var gone = Upload(.file(path: "/nonexistent/rockpool", length: 3))
        #expect(read(&gone).0 == .failed)
        let path = try file("abc")
        defer { unlink(path) }
        var short = Upload(.file(path: path, length: 5))
        #expect(read(&short) == (.bytes(3), "abc"))
        #expect(read(&short).0 == .failed)
        short.abandon()
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
