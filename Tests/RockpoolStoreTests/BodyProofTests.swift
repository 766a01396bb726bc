// A stored body is checked against the digests in the response (RFC 9530 §2, §3; RFC 1864).
import Crypto
import Foundation
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct BodyProofTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private static func field(_ name: String, _ body: [UInt8]) -> String {
        switch name {
        case "sha-256": "sha-256=:\(Data(SHA256.hash(data: body)).base64EncodedString()):"
        case "sha-512": "sha-512=:\(Data(SHA512.hash(data: body)).base64EncodedString()):"
        default: Data(Insecure.MD5.hash(data: body)).base64EncodedString()
        }
    }

    /// Stores the body in two transfers, with `second` as the bytes of the second.
    private func join(at target: String = "/a", _ first: [UInt8], _ second: [UInt8], _ fields: HTTPFields) async throws -> Bool {
        let store = try openCache(scratch.cache, time)
        let total = first.count + second.count
        let part = try #require(await store.putPart(target, first, of: total, at: time.now))
        let writer = try #require(
            await store.beginWrite(joining: [(part, 0..<Int64(first.count))], expectedLength: Int64(total), category: .assets))
        #expect(try await writer.append(all: second))
        let response = StoredResponse(head: ResponseHead(status: 200, fields: fields), requestTime: time.now, responseTime: time.now)
        let entry = try? await store.commit(writer, key: key(target), response: response)
        if let entry { #expect(try await store.bytes(of: entry) == first + second) }
        await store.close()
        return entry != nil
    }

    @Test(
        arguments: [("Repr-Digest", "sha-256"), ("Repr-Digest", "sha-512"), ("Content-Digest", "sha-256"), ("Content-MD5", "md5")],
        [20_000, 200_000])
    func aJoinedBodyIsItsHash(_ given: (name: String, algorithm: String), size: Int) async throws {
        let body = bytes(size)
        let name = try #require(HTTPField.Name(given.name))
        let (first, second) = (Array(body[..<(size / 2)]), Array(body[(size / 2)...]))
        #expect(try await join(first, second, [name: Self.field(given.algorithm, body)]))
        var wrong = second
        wrong[0] ^= 1
        #expect(try await !join(at: "/b", first, wrong, [name: Self.field(given.algorithm, body)]))
    }

    @Test(arguments: ["", "sha-256=:AA:", "sha-256=3", "unixsum=:AAAA:", "sha-256=:%%:", "md5"])
    func whatCannotBeReadProvesNothing(_ value: String) async throws {
        #expect(try await join(bytes(10), bytes(10), value.isEmpty ? [:] : [try #require(HTTPField.Name("Content-MD5")): value]))
    }

    @Test(arguments: [true, false]) func aBodyOfOneTransferIsItsSHA256(isRight: Bool) async throws {
        let store = try openCache(scratch.cache, time)
        let body = bytes(100)
        let writer = try #require(await store.beginWrite(expectedLength: nil, category: .assets))
        #expect(try await writer.append(all: body))
        let name = try #require(HTTPField.Name("Repr-Digest"))
        let fields: HTTPFields = [name: Self.field("sha-256", isRight ? body : bytes(101))]
        let response = StoredResponse(head: ResponseHead(status: 200, fields: fields), requestTime: time.now, responseTime: time.now)
        #expect(((try? await store.commit(writer, key: key("/a"), response: response)) != nil) == isRight)
        await store.close()
    }
}
