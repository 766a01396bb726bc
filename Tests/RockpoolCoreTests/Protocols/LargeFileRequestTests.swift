// What clients of Git LFS ask, and answers made of those to others (RockpoolCore/Protocols/GitRequest.swift).
import Testing

@testable import RockpoolCore

@Suite struct LargeFileRequestTests {
    private func request(_ digests: [String], transfers: [String] = ["basic", "ssh"], operation: String = "download") -> LargeFileRequest? {
        let objects = digests.map { digest -> JSONValue in ["oid": .string(digest), "size": 7] }
        let body: JSONValue = [
            "operation": .string(operation), "objects": .array(objects), "transfers": .array(transfers.map { .string($0) }),
            "ref": ["name": "refs/heads/main"], "hash_algo": "sha256",
        ]
        return LargeFileRequest(body: body.serialized())
    }

    private func answer(_ digests: String..., at host: String = "files", transfer: JSONValue? = nil) -> JSONValue {
        let objects = digests.map { digest -> JSONValue in
            ["oid": .string(digest), "size": 7, "actions": ["download": ["href": .string("https://\(host)/\(digest)"), "expires_in": 60]]]
        }
        var answer: JSONValue = ["objects": .array(objects)]
        answer["transfer"] = transfer
        return answer
    }

    /// git-lfs names the ways of transfer in a random order.
    @Test func theOrderIsNoPartOfAQuestion() throws {
        let one = try #require(request(["a", "b"]))
        #expect(request(["b", "a"], transfers: ["ssh", "basic"])?.key == one.key)
        #expect(request(["a"])?.key != one.key && request(["a", "b"], transfers: ["basic"])?.key != one.key)
        #expect(request(["a"], operation: "upload") == nil && LargeFileRequest(body: Array("{}".utf8)) == nil)
        #expect(LargeFileRequest(body: Array(#"{"operation":"download","objects":[{"oid":1}]}"#.utf8)) == nil)
    }

    @Test func anAnswerIsMadeOfThoseToOthers() throws {
        let asked = try #require(request(["b", "a", "c"]))
        let stored = [answer("a"), answer("a", "b", at: "old"), answer("c", transfer: "tus")]
        let made = try #require(asked.answer(from: stored, lack: "not asked for before"))
        let objects = try #require(made["objects"]?.array)
        #expect(made["transfer"]?.string == "basic" && objects.map { $0["oid"]?.string } == ["b", "a", "c"])
        #expect(objects[0]["actions"]?["download"] == ["href": "https://old/b"])
        #expect(objects[1]["actions"]?["download"] == ["href": "https://files/a"])
        #expect(objects[2]["error"]?["message"]?.string == "not asked for before" && objects[2]["actions"] == nil)
        #expect(asked.answer(from: [answer("d"), ["message": "no"]], lack: "") == nil)
    }
}
