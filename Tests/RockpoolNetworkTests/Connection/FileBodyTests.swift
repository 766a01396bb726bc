// Slices of stored files, and the one file descriptor that the readers of a file share.
import Foundation
import Glibc
import NIOCore
import RockpoolCore
import RockpoolEngine
import Testing

@testable import RockpoolNetwork

struct FileBodyTests {
    private let path = "\(NSTemporaryDirectory())rockpool-\(UUID().uuidString)"

    private func write(_ bytes: Data, to path: String) throws { try bytes.write(to: URL(fileURLWithPath: path)) }

    @Test(arguments: [(0, 10, 4, [4, 4, 2]), (3, 7, 100, [7]), (0, 0, 4, [])] as [(Int64, Int64, Int, [Int])])
    func aPartIsReadInPieces(offset: Int64, length: Int64, most: Int, pieces: [Int]) async throws {
        let bytes = Data("0123456789".utf8)
        try write(bytes, to: path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let body = FileBody(path: path, offset: offset, length: length, lease: ())
        var (found, all) = ([Int](), Data())
        while let piece = try await body.next(upTo: most) {
            found.append(piece.readableBytes)
            all += Data(piece.readableBytesView)
        }
        #expect(found == pieces && all == bytes.dropFirst(Int(offset)).prefix(Int(length)))
    }

    @Test func aFileThatIsNotThereBreaksOff() async throws {
        let body = FileBody(path: path, offset: 0, length: 10, lease: ())
        await #expect(throws: TransferFailure.self) { try await body.next() }
    }

    @Test func readersOfOneFileShareADescriptor() throws {
        try write(Data("one".utf8), to: path)
        defer { try? FileManager.default.removeItem(atPath: path) }
        let first = try OpenBody(path)
        let second = try OpenBody(path)
        #expect(first.descriptor == second.descriptor)
        try write(Data("two".utf8), to: path + ".new")
        let status = rename(path + ".new", path)
        #expect(status == 0)
        let third = try OpenBody(path)
        #expect(third.descriptor != first.descriptor, "a file was renamed to the same path, so it needs a new descriptor")
    }
}
