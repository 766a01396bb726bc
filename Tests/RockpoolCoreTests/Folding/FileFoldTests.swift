// docs/outbox.md#files-and-collections: the state of files after the writes of their client (RFC 4918 §9).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct FileFoldTests {
    static func write(_ line: String, at sequence: Int64) throws -> FileWrite {
        let words = line.split(separator: " ").map { String($0) }
        var head = RequestHead(
            method: try #require(HTTPRequest.Method(words[0])), origin: OriginAddress(scheme: .http, host: "dav"), target: words[1])
        if words.count > 2 { head.fields[try #require(HTTPField.Name("Destination"))] = words[2] }
        var write = try #require(FileWrite(head))
        write.sequence = sequence
        return write
    }

    static func fold(_ lines: String...) throws -> FileFold {
        FileFold(try lines.enumerated().map { try write($1, at: Int64($0 + 1)) })
    }

    private func words(_ fold: FileFold, _ path: String) -> String {
        switch fold.state(of: FilePath(path)) {
        case .server(let path, _): "server \(path.target)"
        case .content(let write): "content \(write.sequence)"
        case .collection(let write): "collection \(write.sequence)"
        case .absent(let write): "absent \(write.sequence)"
        case .unclear: "unclear"
        }
    }

    @Test func theLastWriteDecides() throws {
        let fold = try Self.fold("PUT /a", "PUT /a", "DELETE /b", "PUT /c", "DELETE /c")
        #expect(words(fold, "/a") == "content 2" && words(fold, "/b") == "absent 3" && words(fold, "/c") == "absent 5")
        #expect(words(fold, "/d") == "server /d")
    }

    @Test func aMoveTakesEverythingAlong() throws {
        let fold = try Self.fold("PUT /one/x", "MOVE /one /two", "PUT /one/y", "MOVE /two/old http://dav/two/new")
        #expect(words(fold, "/two/x") == "content 1" && words(fold, "/one/x") == "absent 2" && words(fold, "/one/y") == "content 3")
        #expect(words(fold, "/two/other") == "server /one/other")
        #expect(words(fold, "/two/new") == "server /one/old" && words(fold, "/two/old") == "absent 4")
        let created = fold.created(within: FilePath("/"), isDeep: true)
        #expect(created == Set(["/one/x", "/two/x", "/two", "/one/y", "/two/new"].map { FilePath($0) }))
        #expect(fold.created(within: FilePath("/two"), isDeep: false) == Set(["/two/x", "/two/new"].map { FilePath($0) }))
    }

    @Test func aCopyLeavesItsSource() throws {
        let fold = try Self.fold("COPY /a /b", "MKCOL /c", "DELETE /d/")
        #expect(words(fold, "/a/x") == "server /a/x" && words(fold, "/b/x") == "server /a/x")
        #expect(fold.isWithinNew(FilePath("/c/x")) && !fold.isWithinNew(FilePath("/c")))
        #expect(words(fold, "/c/") == "collection 2" && words(fold, "/d/deep/er") == "absent 3" && words(fold, "/dd") == "server /dd")
    }

    @Test(arguments: [
        (["MKCOL /t"], "/t/a/b", "/t"), (["MKCOL /t", "MKCOL /t/a"], "/t/a/b", "/t/a"), (["DELETE /t"], "/t/a", "/t/a"),
        (["MKCOL /t"], "/t", nil), (["MKCOL /u"], "/t/a", nil), (["MKCOL /t", "MOVE /x /t/a"], "/t/a/b", nil),
        (["MKCOL /t", "COPY /x /t/a"], "/t/a", nil), (["DELETE /t", "MKCOL /t"], "/t", nil),
    ])
    func onlyWhatIsKnownToLackIsAGap(lines: [String], path: String, gap: String?) throws {
        let fold = FileFold(try lines.enumerated().map { try Self.write($1, at: Int64($0 + 1)) })
        #expect(fold.gap(at: FilePath(path)) == gap.map { FilePath($0) })
    }

    @Test(arguments: [("/a%20b/", "/a b"), ("/%C3%A9?q", "/é"), ("/", ""), ("/a%2Fb", "/a/b")])
    func pathsHaveOneForm(target: String, text: String) { #expect(FilePath(target).text == text) }

    @Test func pathsAreWrittenAsTargets() {
        #expect(FilePath("/a%20b/%C3%A9").target == "/a%20b/%C3%A9" && FilePath("/").target == "/")
        #expect(FilePath(href: "http://dav:80/x/").text == "/x" && FilePath(href: "http://dav").text == "")
    }

    @Test func onlyWhatIsNeededIsAwaited() throws {
        let (collection, file) = (try Self.write("MKCOL /a", at: 1), try Self.write("PUT /a/b", at: 2))
        #expect(file.mustFollow(collection) && collection.mustFollow(file))
        let (one, other) = (try Self.write("PUT /a", at: 1), try Self.write("PUT /a/b", at: 2))
        #expect(!one.mustFollow(other))
        #expect(try Self.write("MOVE /x /a/c", at: 3).mustFollow(collection))
        #expect(try !Self.write("MOVE /x /y", at: 3).mustFollow(collection))
    }

    @Test func aCollectionIsRemovedInOrder() throws {
        let (removal, file) = (try Self.write("DELETE /a/", at: 1), try Self.write("PUT /a/b%20c", at: 2))
        #expect(removal.mustFollow(file) && file.mustFollow(removal))
        let below = try Self.write("DELETE /a/b/c", at: 3)
        #expect(removal.mustFollow(below) && below.mustFollow(removal) && !below.mustFollow(file))
        #expect(try !removal.mustFollow(Self.write("PUT /ab", at: 3)) && !file.mustFollow(Self.write("DELETE /a/b%20c", at: 3)))
    }

    /// A copy of S3.
    private static func copy(
        _ source: String, to target: String, host: String = "s3", isReplacing: Bool = false
    ) throws -> FileWrite {
        var head = RequestHead(method: .put, origin: OriginAddress(scheme: .http, host: host), target: target)
        head.fields[try #require(HTTPField.Name("X-Amz-Copy-Source"))] = source
        if isReplacing { head.fields[try #require(HTTPField.Name("X-Amz-Metadata-Directive"))] = "REPLACE" }
        return try #require(FileWrite(head))
    }

    @Test(arguments: ["/bucket/a/x%20y", "bucket/a%2Fx%20y", "/bucket/a/x%20y?versionId=7"])
    func aCopyOfAnObjectIsOrderedWithItsSource(source: String) throws {
        let copy = try Self.copy(source, to: "/bucket/b?x-id=CopyObject")
        for line in ["PUT /bucket/a/x%20y", "DELETE /bucket/a/x%20y", "DELETE /bucket/b"] {
            let write = try Self.write(line, at: 2)
            #expect(write.mustFollow(copy) && copy.mustFollow(write), "\(line)")
        }
        #expect(try !Self.write("DELETE /bucket/a/z", at: 2).mustFollow(copy))
        let hosted = try Self.copy(source, to: "/b", host: "bucket.s3.example")
        #expect(try Self.write("DELETE /a/x%20y", at: 2).mustFollow(hosted))
    }

    @Test func aCopyOfAnObjectShowsItsSource() throws {
        let removal = try Self.write("DELETE /bucket/a", at: 2)
        let copied = FileFold([try Self.copy("bucket/a", to: "/bucket/b"), removal])
        #expect(words(copied, "/bucket/b") == "server /bucket/a" && words(copied, "/bucket/a") == "absent 2")
        let earlier = try Self.write("DELETE /bucket/b", at: 1)
        for other in [
            try Self.copy("bucket/a?versionId=7", to: "/bucket/b"),
            try Self.copy("bucket/a", to: "/bucket/b", isReplacing: true),
        ] { #expect(words(FileFold([earlier, other, removal]), "/bucket/b") == "server /bucket/b") }
    }

    // MARK: bounds

    /// Trees that are copied into each other grow like Fibonacci's numbers: what is shown of them is bounded, and their members alone are known.
    @Test(.timeLimit(.minutes(1))) func treesThatAreCopiedIntoEachOtherAreFollowedToALimit() throws {
        let lines = ["PUT /a/x"] + (0..<200).map { $0 % 2 == 0 ? "COPY /a /b/\($0)" : "COPY /b /a/\($0)" }
        let fold = FileFold(try lines.enumerated().map { try Self.write($1, at: Int64($0 + 1)) })
        #expect(fold.created(within: FilePath("/"), isDeep: true) == nil)
        let members = try #require(fold.created(within: FilePath("/b"), isDeep: false))
        #expect(members == Set((0..<100).map { FilePath("/b/\($0 * 2)") }))
        #expect(words(fold, "/b/0/x") == "content 1" && words(fold, "/b/198/1/0/x") == "content 1")
    }

    /// Copies of objects are no trees: each creates one path.
    @Test func copiesOfObjectsBelowTheirNamesAddOnePathEach() throws {
        let copies = try (0..<40).map { try Self.copy("bucket/a", to: "/bucket/a/\($0)") }
        let fold = FileFold([try Self.write("PUT /bucket/a", at: 1)] + copies)
        #expect(fold.created(within: FilePath("/bucket"), isDeep: true)?.count == 41)
        #expect(words(fold, "/bucket/a/7") == "content 1")
    }

    @Test func aFileIsFollowedThroughALimitedNumberOfMoves() throws {
        for (count, state) in [(64, "content 1"), (65, "unclear")] {
            let lines = ["PUT /0"] + (0..<count).map { "MOVE /\($0) /\($0 + 1)" }
            let fold = FileFold(try lines.enumerated().map { try Self.write($1, at: Int64($0 + 1)) })
            #expect(words(fold, "/\(count)") == state && words(fold.indexed, "/\(count)") == state)
        }
    }

    /// The states of many files at once are those of each.
    @Test(arguments: 0..<200) func anIndexChangesNoState(seed: UInt64) throws {
        var random = SeededRandom(state: seed)
        let names = ["/a", "/a/b", "/a/b/c", "/b", "/b/a", "/c", "/c/a/b", "/a/c"]
        let name = { names[Int(random.next() % UInt64(names.count))] }
        let writes = try (1...20).map { sequence -> FileWrite in
            let line = ["PUT \(name())", "DELETE \(name())", "MKCOL \(name())", "MOVE \(name()) \(name())", "COPY \(name()) \(name())"]
            return try Self.write(line[Int(random.next() % 5)], at: Int64(sequence))
        }
        let fold = FileFold(writes)
        for path in (names + ["/a/b/c/d", "/d"]).map({ FilePath($0) }) {
            #expect(fold.state(of: path) == fold.indexed.state(of: path), "\(path.text)")
        }
    }

    private static func isIntoItself(_ method: String, _ source: String, _ destination: String, depth: String?) throws -> Bool {
        var head = RequestHead(
            method: try #require(HTTPRequest.Method(method)), origin: OriginAddress(scheme: .http, host: "dav"), target: source)
        head.fields[try #require(HTTPField.Name("Destination"))] = destination
        if let depth { head.fields[try #require(HTTPField.Name("Depth"))] = depth }
        return FileWrite.isIntoItself(head)
    }

    @Test(
        arguments: ["COPY", "MOVE"],
        [
            "/a", "/a/", "/a/b", "/a/b/c/", "http://dav/a/b", "http://DAV:80/a/b", "//dav/a/b", "/%61/b", "/a%2Fb", "//a//b", "/x/../a/b",
            "/x/%2e%2e/a/b",
            "/./a/./b", "/a/b?x", "b/../a/c",
        ])
    func aTreeIsNotPutIntoItselfInAnySpelling(method: String, destination: String) throws {
        let isAuthority = destination == "//a//b"
        #expect(try Self.isIntoItself(method, "/a", destination, depth: nil) != isAuthority, "\(destination)")
        #expect(try Self.isIntoItself(method, "/x/..//a/", destination, depth: "infinity") != isAuthority, "\(destination)")
    }

    @Test(arguments: [("/a", "/ab", nil), ("/a", "/b/a", nil), ("/a/b", "/a", nil), ("/a", "http://other/a/b", nil), ("/a", "/a/b", "0")])
    func otherCopiesAreNot(source: String, destination: String, depth: String?) throws {
        #expect(try !Self.isIntoItself("COPY", source, destination, depth: depth))
    }

    @Test func onlyTheNearestOfWritesInARowIsAwaited() throws {
        let copies = try (0..<832).map { try Self.write("COPY /src /dst/\($0)", at: Int64($0)) }
        let next = try Self.write("COPY /src /dst/last", at: 900)
        #expect(copies.allSatisfy { next.mustFollow($0) } && FileWrite.nearest(of: copies).map(\.sequence) == [831])
        let files = try (0..<100).map { try Self.write("PUT /dir/\($0)", at: Int64($0)) }
        let removal = try Self.write("DELETE /dir/", at: 100)
        #expect(FileWrite.nearest(of: files).count == 100, "none of them waits for another")
        let later = try Self.write("MOVE /dir /other", at: 101)
        #expect(FileWrite.nearest(of: (files.suffix(20) + [removal]).filter(later.mustFollow)).map(\.sequence) == [100])
    }

    @Test(arguments: ["PATCH /a", "POST /a", "PUT /a?acl", "PUT /a?uploadId=1", "MOVE /a"])
    func otherWritesAreNoFiles(line: String) throws {
        let words = line.split(separator: " ").map { String($0) }
        let head = RequestHead(
            method: try #require(HTTPRequest.Method(words[0])), origin: OriginAddress(scheme: .http, host: "dav"), target: words[1])
        #expect(FileWrite(head) == nil)
    }
}
