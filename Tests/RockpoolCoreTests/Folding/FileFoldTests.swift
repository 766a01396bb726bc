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

    @Test(arguments: ["PATCH /a", "POST /a", "PUT /a?acl", "PUT /a?uploadId=1", "MOVE /a"])
    func otherWritesAreNoFiles(line: String) throws {
        let words = line.split(separator: " ").map { String($0) }
        let head = RequestHead(
            method: try #require(HTTPRequest.Method(words[0])), origin: OriginAddress(scheme: .http, host: "dav"), target: words[1])
        #expect(FileWrite(head) == nil)
    }
}
