// Documents of WebDAV and S3: elements have places within the document, and each is whole also in another document.
import HTTPTypes
import RockpoolCore

extension FuzzTarget {
    static func xml(_ bytes: [UInt8]) throws(BrokenProperty) {
        let origin = OriginAddress(scheme: .http, host: "dav")
        if let method = HTTPRequest.Method("REPORT") {
            _ = PropertyRequest(RequestHead(method: method, origin: origin, target: "/d/"), body: bytes)
        }
        let put = FileWrite(RequestHead(method: .put, origin: origin, target: "/b/a%26"))
        let fold = FileFold(put.map { [$0] } ?? [])
        let list = RequestHead(method: .get, origin: origin, target: "/b?list-type=2&prefix=")
        if let listing = ObjectListing(list, body: bytes) {
            guard let shown = listing.folded(with: fold, etag: { _ in "\"1\"" }).body else {
                throw BrokenProperty(description: "a written object is listed")
            }
            guard let again = ObjectListing(list, body: shown) else { throw BrokenProperty(description: "a folded list is a list") }
            try hold(again.folded(with: FileFold([])) { _ in nil }.body == nil, "nothing changes nothing")
        }
        guard let document = Multistatus(bytes) else { return }
        var place = 0
        for response in document.responses {
            try hold(response.element.lowerBound >= place && response.element.upperBound <= bytes.count, "elements are one after the other")
            try hold(response.element.contains(response.href.lowerBound), "a path is within its element")
            place = response.element.upperBound
        }
        let whole = document.with(document.responses.map { Array(bytes[$0.element]) })
        try hold(Multistatus(whole)?.responses.map(\.path) == document.responses.map(\.path), "a document of its own elements is the same")
        try hold(Multistatus(document.with([]))?.responses.isEmpty == true, "a document without its elements has none")
        guard let first = document.responses.first else { return }
        let path = FilePath("/x%20&y")
        let other = Multistatus(Multistatus.empty.with([document.exported(first, at: path)]))
        try hold(other?.responses.map(\.path) == [path], "an element is whole in another document")
    }
}
