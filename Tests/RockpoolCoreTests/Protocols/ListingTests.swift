// docs/outbox.md#files-and-collections, #s3: documents that list files are changed where they must be, and nowhere else.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ListingTests {
    private let body = """
        <?xml version="1.0"?><!-- <response> --><x:multistatus xmlns:x="DAV:"><x:response><x:href>http://dav/d/</x:href></x:response>
        <x:response a=">"><x:href>/d/a%20b</x:href><x:propstat><x:prop><x:href>/other</x:href></x:prop></x:propstat></x:response>
        <x:sync-token>1</x:sync-token></x:multistatus>
        """

    private func head(_ method: String, _ target: String, depth: String? = nil) throws -> RequestHead {
        var head = RequestHead(
            method: try #require(HTTPRequest.Method(method)), origin: OriginAddress(scheme: .http, host: "dav"), target: target)
        if let depth { head.fields[try #require(HTTPField.Name("Depth"))] = depth }
        return head
    }

    @Test func aMultistatusIsReadByItsResources() throws {
        let document = try #require(Multistatus(Array(body.utf8)))
        #expect(document.responses.map(\.path.text) == ["/d", "/d/a b"] && document.responses.map(\.isCollection) == [true, false])
        #expect(document.with(document.responses.map { Array(document.body[$0.element]) }).count == body.utf8.count - 1)
        let moved = String(decoding: document.element(document.responses[1], at: FilePath("/e/ä")), as: UTF8.self)
        let exported = String(decoding: document.exported(document.responses[0], at: FilePath("/e")), as: UTF8.self)
        #expect(exported == "<x:response xmlns:x=\"DAV:\"><x:href>/e/</x:href></x:response>")
        let others = body.replacing("xmlns:x=\"DAV:\"", with: "xmlns:x=\"DAV:\" lang=\"a\" xmlns:y='&quot;'")
            .replacing("a=\">\"", with: "xmlns:z='z'")
        let named = try #require(Multistatus(Array(others.utf8)))
        let start = "<x:response xmlns:x=\"DAV:\" xmlns:y=\"&quot;\" xmlns:z='z'><x:href>/f</x:href>"
        #expect(String(decoding: named.exported(named.responses[1], at: FilePath("/f")), as: UTF8.self).hasPrefix(start))
        #expect(moved.contains("<x:href>/e/%C3%A4</x:href>") && moved.contains("<x:href>/other</x:href>"))
        #expect(String(decoding: document.with([]), as: UTF8.self).hasSuffix("\n<x:sync-token>1</x:sync-token></x:multistatus>"))
        for other in [
            "", "<a/>", "{}", "<multistatus>", "<multistatus/>", "<!DOCTYPE multistatus><multistatus></multistatus>",
            "<multistatus><response></multistatus>", "<multistatus>&unknown;</multistatus>",
        ] { #expect(Multistatus(Array(other.utf8)) == nil, "\(other)") }
    }

    @Test func onlyWhatIsAskedForIsAnswered() throws {
        let asked = "<propfind xmlns=\"DAV:\"><prop><getetag/><resourcetype/></prop></propfind>"
        let request = try #require(PropertyRequest(try head("PROPFIND", "/d/", depth: "1"), body: Array(asked.utf8)))
        let fold = try FileFoldTests.fold("PUT /d/a", "PUT /d/a/b", "PUT /e")
        #expect(request.shown(by: fold) == Set(["/d", "/d/a"].map { FilePath($0) }))
        let write = try FileFoldTests.write("PUT /d/a&b", at: 1)
        let text = String(decoding: request.response(for: write.path, write, isCollection: false, etag: "\"1\""), as: UTF8.self)
        #expect(text.contains("<D:href>/d/a&amp;b</D:href>") && text.contains("<D:getetag>\"1\"</D:getetag>"))
        #expect(text.contains("<D:resourcetype></D:resourcetype>") && !text.contains("getcontentlength"), "\(text)")
    }

    @Test func aMultigetNamesItsFiles() throws {
        let asked =
            "<C:calendar-multiget xmlns:C=\"c\" xmlns=\"DAV:\"><prop><C:calendar-data/></prop><href>/d/1.ics</href></C:calendar-multiget>"
        let request = try #require(PropertyRequest(try head("REPORT", "/d/"), body: Array(asked.utf8)))
        #expect(request.named == [FilePath("/d/1.ics")] && request.readsContents)
        #expect(request.shown(by: FileFold([])) == [FilePath("/d/1.ics")])
        let query =
            "<C:calendar-query xmlns:C='c'><C:filter><C:comp-filter name='VCALENDAR'><C:comp-filter\nname = 'VTODO'/></C:comp-filter>"
        let selected = try #require(PropertyRequest(try head("REPORT", "/d/"), body: Array("\(query)</C:filter></C:calendar-query>".utf8)))
        #expect(selected.selects(Array("BEGIN:VTODO".utf8)) && !selected.selects(Array("BEGIN:VEVENT".utf8)))
        #expect(PropertyRequest(try head("REPORT", "/d/"), body: Array(query.utf8)) == nil, "no document")
    }

    /// In UTF-16 too, which a server has to read (RFC 4918 §8.2).
    @Test func aRequestInUTF16IsRead() throws {
        let text = "<?xml version=\"1.0\" encoding=\"UTF-16\"?><propfind><prop><getetag/></prop></propfind>"
        let units: [UInt8] = text.utf16.flatMap { unit -> [UInt8] in
            [UInt8(truncatingIfNeeded: unit >> 8), UInt8(truncatingIfNeeded: unit)]
        }
        let body: [UInt8] = [0xFE, 0xFF] + units
        let request = try #require(PropertyRequest(try head("PROPFIND", "/d/", depth: "1"), body: body))
        #expect(request.isAnswered(by: Array("<a><getetag/></a>".utf8)) && !request.isAnswered(by: Array("<a><other/></a>".utf8)))
    }

    @Test func aBucketIsListedWithWhatWaits() throws {
        let list =
            "<ListBucketResult><KeyCount>2</KeyCount><Contents><Key>a</Key></Contents><Contents><Key>c</Key></Contents></ListBucketResult>"
        let request = try head("GET", "/b?list-type=2&prefix=")
        let listing = try #require(ObjectListing(request, body: Array(list.utf8)))
        let fold = try FileFoldTests.fold("PUT /b/b", "DELETE /b/c", "PUT /other/x")
        let folded = try #require(listing.folded(with: fold) { _ in "\"1\"" }.body)
        let text = String(decoding: folded, as: UTF8.self)
        #expect(text.contains("<KeyCount>2</KeyCount>") && text.contains("<Key>a</Key>") && text.contains("<Key>b</Key>"), "\(text)")
        #expect(!text.contains("<Key>c</Key>") && !text.contains("x</Key>") && text.hasSuffix("</ListBucketResult>"), "\(text)")
        let other = listing.folded(with: try FileFoldTests.fold("PUT /other/x")) { _ in nil }
        #expect(other.body == nil && other.isClear)
        let moves = try (0..<70).map { try FileFoldTests.write("MOVE /b/\($0) /b/\($0 == 69 ? "a" : "\($0 + 1)")", at: Int64($0)) }
        #expect(!listing.folded(with: FileFold(moves)) { _ in nil }.isClear)
        let partial = list.replacing("<KeyCount>", with: "<IsTruncated>true</IsTruncated><KeyCount>")
        #expect(ObjectListing(request, body: Array(partial.utf8)) == nil)
    }

    @Test func uploadsInChunksAreTheirContent() {
        let body = Array("3;chunk-signature=1\r\nabc\r\n2\r\nde\r\n0\r\nx-amz-checksum-crc32:1\r\n\r\n".utf8)
        let fields: HTTPFields = [.contentEncoding: "aws-chunked"]
        #expect(ChunkedUpload.content(of: body, fields) == Array("abcde".utf8))
        #expect(ChunkedUpload.content(of: body, [:]) == body)
    }
}
