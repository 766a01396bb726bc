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
        #expect(fold.created == Set(["/one/x", "/two/x", "/two", "/one/y", "/two/new"].map { FilePath($0) }))
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

    @Test(arguments: ["PATCH /a", "POST /a", "PUT /a?acl", "PUT /a?uploadId=1", "MOVE /a"])
    func otherWritesAreNoFiles(line: String) throws {
        let words = line.split(separator: " ").map { String($0) }
        let head = RequestHead(
            method: try #require(HTTPRequest.Method(words[0])), origin: OriginAddress(scheme: .http, host: "dav"), target: words[1])
        #expect(FileWrite(head) == nil)
    }
}
