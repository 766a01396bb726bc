// Lists of references, and what of them can be followed (RockpoolCore/Protocols/GitPack.swift).
import Testing

@testable import RockpoolCore

@Suite struct GitReferencesTests {
    private func name(_ digit: Character) -> String { String(repeating: digit, count: 40) }

    /// The answer to `ls-refs`.
    private func listing(_ lines: [String]) -> [UInt8] { lines.flatMap { GitPacket.line($0) } + GitPacket.flushBytes }

    private func references(_ lines: String...) throws -> GitReferences { try #require(GitReferences(listing(lines))) }

    @Test func bothFormsAreReadAndWritten() throws {
        let second = listing([
            "unborn HEAD symref-target:refs/heads/main", name("a") + " refs/heads/x", name("b") + " refs/tags/v1 peeled:" + name("c"),
            name("a") + " refs/heads/y",
        ])
        let list = try #require(GitReferences(second))
        #expect(list.objects == [name("a"), name("b")] && list.bytes == second)
        let first =
            GitPacket.line("# service=git-upload-pack") + GitPacket.flushBytes
            + listing([
                name("a") + " HEAD\0multi_ack symref=HEAD:refs/heads/main", name("a") + " refs/heads/main", name("b") + " refs/tags/v1",
                name("c") + " refs/tags/v1^{}",
            ])
        let old = try #require(GitReferences(first))
        #expect(old.objects == [name("a"), name("b")] && old.bytes == first)
        let others = [
            Array("<html>".utf8), listing(["version 2", "agent=git/2.39.5", "ls-refs=unborn"]), listing(["a1 refs/heads/x"]),
            GitPacket.line(name("a") + " refs/heads/x"), listing([name("a") + " HEAD\0x", name("a") + " refs/heads/x\0y"]),
        ]
        for other in others { #expect(GitReferences(other) == nil, "\(String(decoding: other, as: UTF8.self))") }
    }

    @Test func whatNobodyFetchedIsShownAsItWas() throws {
        let before = try references(
            name("a") + " HEAD", name("a") + " refs/heads/main", name("b") + " refs/tags/v1", name("e") + " refs/heads/gone")
        let newest = try references(
            name("c") + " HEAD", name("c") + " refs/heads/main", name("d") + " refs/heads/side", name("b") + " refs/tags/v1")
        let fetched: Set = [name("a"), name("b"), name("e")]
        let shown = try references(name("a") + " HEAD", name("a") + " refs/heads/main", name("b") + " refs/tags/v1")
        #expect(newest.followable(fetched, before: before) == shown)
        // What was moved and fetched is new, whatever else is not.
        #expect(newest.followable(fetched.union([name("c")]), before: before).objects == [name("b"), name("c")])
        #expect(newest.followable(fetched.union([name("c"), name("d")]), before: before) == newest)
        // What is no longer stored is not shown as it was.
        #expect(newest.followable([name("b")], before: before).objects == [name("b")])
        #expect(newest.followable([], before: before) == newest && newest.followable([name("e")], before: nil) == newest)
    }

    @Test func aTagKeepsItsCommitAndTheFirstOneWhatTheServerCanDo() throws {
        let first = listing([
            name("a") + " HEAD\0multi_ack", name("b") + " refs/tags/v1", name("c") + " refs/tags/v1^{}", name("d") + " refs/tags/v2",
            name("e") + " refs/tags/v2^{}",
        ])
        let list = try #require(GitReferences(first)).followable([name("b")], before: nil)
        #expect(list.bytes == listing([name("b") + " refs/tags/v1\0multi_ack", name("c") + " refs/tags/v1^{}"]))
    }
}
