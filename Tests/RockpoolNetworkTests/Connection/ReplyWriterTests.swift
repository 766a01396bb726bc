// The slice of a file that a reply sends (RFC 9110 §14.4).
import Foundation
import NIOCore
import NIOEmbedded
import NIOPosix
import RockpoolCore
import RockpoolEngine
import Testing

@testable import RockpoolNetwork

struct ReplyWriterTests {
    @Test(
        arguments: [
            (0, 10, [0..<10]), (7, 1, [7..<8]), (5, 262_145, [5..<262_150]), (3, 0, []),
        ] as [(Int64, Int64, [Range<Int>])])
    func aSliceOfAFileIsSent(_ offset: Int64, length: Int64, regions: [Range<Int>]) async throws {
        let path = "\(NSTemporaryDirectory())rockpool-\(UUID().uuidString)"
        try Data(count: 524_288).write(to: URL(fileURLWithPath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        let channel = NIOAsyncTestingChannel()
        let writer = ReplyWriter(channel: channel, wire: .plain, isHead: false, isOldClient: false, keepsAlive: true)
        let reply = Reply(
            head: ResponseHead(status: 206), body: .file(path: path, offset: offset, length: length, lease: ()),
            trace: Trace(method: "GET", url: "http://api.test/", startedAt: Timestamp(seconds: 0)))
        #expect(try await writer.send(reply))
        let head = try await channel.readOutbound(as: ByteBuffer.self)
        #expect(head.map { String(buffer: $0) }?.contains("Content-Length: \(length)\r\n") == true)
        var sent: [Range<Int>] = []
        while regions.count > sent.count, case .fileRegion(let region)? = try await channel.readOutbound(as: IOData.self) {
            sent.append(region.readerIndex..<region.endIndex)
        }
        #expect(sent == regions)
        _ = try? await channel.finish()
    }
}
