// What clients of git ask, and the packs that answer them (RockpoolCore/Protocols/GitRequest.swift).
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct GitRequestTests {
    private func message(_ lines: [String]) -> [UInt8] {
        lines.flatMap { line in
            switch line {
            case "0000": GitPacket.flushBytes
            case "0001": GitPacket.delimiterBytes
            default: GitPacket.line(line)
            }
        }
    }

    private func request(_ lines: String...) throws -> GitRequest { try #require(GitRequest(body: message(lines))) }

    @Test func packetsAreRead() {
        let bytes = message(["want a", "0001", "0000"]) + Array("0006a\n0005b0004".utf8)
        let expected: [GitPacket] = [
            .data(Array("want a".utf8)), .delimiter, .flush, .data(Array("a".utf8)), .data(Array("b".utf8)), .data([]),
        ]
        #expect(GitPacket.all(in: bytes) == expected)
        for broken in ["0003", "00", "zzzz", "0009abc", "-001"] { #expect(GitPacket.all(in: Array(broken.utf8)) == nil, "\(broken)") }
    }

    @Test func theNameOfAProgramAndItsProgressAreNoPartOfAQuestion() throws {
        let one = try request(
            "command=fetch", "agent=git/2.39.5", "object-format=sha1", "0001", "thin-pack", "no-progress", "want a", "done", "0000")
        let other = try request(
            "command=fetch", "agent=git/2.50", "session-id=x", "object-format=sha1", "0001", "thin-pack", "want a", "done", "0000")
        #expect(one.key == other.key && one.kind == .fetch && one.isDone && one.isComplete && one.wants == ["a"])
        for changed in ["want b", "filter blob:none", "deepen 1", "have c", "shallow d"] {
            let third = try request("command=fetch", "object-format=sha1", "0001", "thin-pack", "want a", changed, "done", "0000")
            #expect(third.key != one.key, "\(changed)")
            #expect(third.isComplete == (changed.hasPrefix("want") || changed.hasPrefix("have")), "\(changed)")
        }
    }

    @Test func everyClientAsksForTheSameReferences() throws {
        let clone = try request(
            "command=ls-refs", "agent=a", "object-format=sha1", "0001", "peel", "symrefs", "unborn", "ref-prefix HEAD",
            "ref-prefix refs/heads/", "ref-prefix refs/tags/", "0000")
        let fetch = try request(
            "command=ls-refs", "agent=b", "object-format=sha1", "0001", "peel", "symrefs", "ref-prefix refs/heads/",
            "ref-prefix refs/heads/main", "ref-prefix refs/tags/", "0000")
        #expect(clone.key == fetch.key)
        let sent = try #require(fetch.replacement.flatMap { GitPacket.all(in: $0) })
        let lines = sent.compactMap(\.text)
        #expect(lines.prefix(3) == ["command=ls-refs", "agent=b", "object-format=sha1"])
        #expect(lines.suffix(3) == ["ref-prefix HEAD", "ref-prefix refs/heads/", "ref-prefix refs/tags/"] && sent.last == .flush)
        // References that a clone does not ask for, and all of them, are other questions.
        for arguments in [["ref-prefix refs/notes/"], ["ref-prefix HEAD", "ref-prefix main"], []] {
            let lines = ["command=ls-refs", "object-format=sha1", "0001", "peel", "symrefs"] + arguments + ["0000"]
            let other = try #require(GitRequest(body: message(lines)))
            #expect(other.key != clone.key && other.replacement == nil, "\(arguments)")
        }
    }

    @Test func theOldProtocolIsRead() throws {
        let one = try request(
            "want a multi_ack_detailed no-done side-band-64k thin-pack no-progress agent=git/2.39.5", "want b", "0000", "have c", "done")
        let other = try request("want a multi_ack_detailed no-done side-band-64k thin-pack agent=x", "want b", "0000", "have c", "done")
        #expect(one.key == other.key && one.isComplete && one.isDone && !one.isVersion2)
        #expect(one.wants == ["a", "b"] && one.haves == ["c"])
        try #expect(!request("want a side-band-64k", "deepen 1", "0000", "done").isComplete)
        try #expect(!request("want a thin-pack", "0000", "done").isComplete)
        let long = try request("want a side-band-64k object-format=sha256", "0000", "done")
        #expect(long.isComplete && long.usesSHA256 && !one.usesSHA256)
        #expect(GitRequest(body: Array("0000".utf8)) == nil && GitRequest(body: Array("hello".utf8)) == nil)
    }

    @Test func aPackIsIntroducedAsItsClientUnderstands() throws {
        func words(_ introduction: (bytes: [UInt8], hasPack: Bool)) -> [String] {
            let packets = GitPacket.all(in: introduction.bytes) ?? []
            return packets.map { $0.text ?? ($0 == .flush ? "0000" : "0001") } + (introduction.hasPack ? ["+"] : [])
        }
        let (begin, bases) = ("want a multi_ack_detailed side-band-64k", ["b", "c"])
        let open = try request(begin + " no-done", "0000", "have b", "have c", "0000")
        #expect(words(open.introduction(bases: bases)) == ["ACK b common", "ACK c common", "ACK c ready", "NAK", "ACK c", "+"])
        #expect(words(open.introduction(bases: [])) == ["NAK"])
        let careful = try request(begin, "0000", "have b", "have c", "0000")
        #expect(words(careful.introduction(bases: bases)) == ["ACK b common", "ACK c common", "ACK c ready", "NAK"])
        let simple = try request("want a side-band-64k", "0000", "have b", "have c", "0000")
        #expect(words(simple.introduction(bases: bases)) == ["NAK"])
        let done = try request(begin, "0000", "have b", "have c", "done")
        #expect(words(done.introduction(bases: bases)) == ["ACK c", "+"] && words(done.introduction(bases: [])) == ["NAK", "+"])
        let second = try request("command=fetch", "0001", "want a", "have b", "have c", "0000")
        #expect(words(second.introduction(bases: bases)) == ["acknowledgments", "ACK b", "ACK c", "ready", "0001", "packfile", "+"])
        #expect(words(second.introduction(bases: [])) == ["acknowledgments", "NAK", "0000"])
        let told = try request("command=fetch", "0001", "want a", "have b", "done", "0000")
        #expect(words(told.introduction(bases: ["b"])) == ["packfile", "+"])
    }

    private func pack(_ wants: [String], having haves: [String] = []) throws -> StoredPack {
        try #require(StoredPack(note: (wants + ["-"] + haves).joined(separator: " ")))
    }

    @Test func packsAreChained() throws {
        // c3 after c2 after c1; d beside them. The newest first.
        let stored = try [
            pack(["c3"], having: ["c2", "c1"]), pack(["c2"], having: ["c1", "mine"]), pack(["c1", "d"]), pack(["e"], having: ["gone"]),
        ]
        func chain(_ wants: [String], having haves: Set<String> = []) -> ([Int], [String])? {
            StoredPack.chain(for: wants, having: haves, among: stored)
        }
        #expect(chain(["c1"]).map { $0.0 } == [2] && chain(["c1", "d"]).map { $0.0 } == [2])
        #expect(Set(chain(["c3"])?.0 ?? []) == [0, 1, 2])
        let fetch = chain(["c3"], having: ["c2", "c1"])
        #expect(fetch?.0 == [0] && fetch?.1 == ["c2", "c1"])
        // Who has only the oldest gets the two behind it.
        #expect(Set(chain(["c3"], having: ["c1"])?.0 ?? []) == [0, 1])
        #expect(chain(["e"]) == nil && chain(["e"], having: ["gone"])?.0 == [3])
        #expect(chain(["unknown"]) == nil && chain(["c1", "unknown"]) == nil)
        #expect(chain(["c1"], having: ["c1"])?.0 == [])
    }

    @Test func whatAStoredAnswerHoldsIsNoted() throws {
        let whole = try request("command=fetch", "0001", "want a", "want b", "have c", "done", "0000")
        let noted = try #require(StoredPack(whole))
        #expect(StoredPack(note: noted.note) == noted && noted.wants == ["a", "b"] && noted.haves == ["c"])
        try #expect(StoredPack(request("command=fetch", "0001", "want a", "deepen 1", "done", "0000")) == nil)
        let many = ["command=fetch", "0001"] + (0...1000).map { "want \($0)" } + ["done", "0000"]
        try #expect(StoredPack(#require(GitRequest(body: message(many)))) == nil)
    }

    @Test(arguments: [
        ("GET", "/a.git/info/refs?service=git-upload-pack", GitExchange.references), ("GET", "/a.git/info/refs", .references),
        ("GET", "/a.git/info/refs?service=git-receive-pack", .push), ("POST", "/a.git/git-receive-pack", .push),
        ("POST", "/a.git/git-upload-pack", .fetch), ("GET", "/a.git/git-upload-pack", .file),
        ("POST", "/a.git/info/lfs/objects/batch", .largeFiles), ("POST", "/a.git/info/lfs/locks", .file), ("GET", "/a.git/HEAD", .file),
    ])
    func requestsAreToldApart(method: String, target: String, expected: GitExchange) throws {
        let origin = OriginAddress(scheme: .https, host: "git.example")
        let request = RequestHead(method: try #require(HTTPRequest.Method(method)), origin: origin, target: target)
        #expect(GitExchange(request) == expected)
    }

    @Test func aRouteOfGitReadsAndNeverQueues() throws {
        let route = Route(match: "/a.git/**", kind: .git)
        let upstream = Upstream(name: "git", origin: OriginAddress(scheme: .https, host: "git.example"), policy: .standard, routes: [route])
        var configuration = Configuration()
        configuration.upstreams = [upstream]
        let table = RouteTable(configuration)
        func plan(_ method: HTTPRequest.Method, _ target: String, type: String = "application/json") -> RoutePlan {
            table.plan(for: RequestHead(method: method, origin: upstream.origin, target: target, fields: [.contentType: type]))
        }
        let fetch = plan(.post, "/a.git/git-upload-pack", type: "application/x-git-upload-pack-request")
        #expect(!fetch.isWrite && fetch.policy == .offlineFirst && fetch.strategy == .networkFirst)
        #expect(!plan(.post, "/a.git/info/lfs/objects/batch").isWrite)
        for target in ["/a.git/git-receive-pack", "/a.git/info/lfs/locks", "/a.git/other"] {
            let push = plan(.post, target)
            #expect(push.isWrite && !push.queueable, "\(target)")
        }
        #expect(plan(.get, "/a.git/objects/aa/bb").strategy == .cacheFirst)
    }
}
