// What a PROPFIND or a REPORT asks for, and the answer for a file that only its client has written (RFC 4918 §9.1, §15; RFC 4791 §7;
// docs/outbox.md#files-and-collections).
import HTTPTypes

/// The parts of a PROPFIND or a REPORT that decide about a file that its server does not have yet.
package struct PropertyRequest: Sendable {
    package enum Depth: Hashable, Sendable { case itself, members, all }

    package var collection: FilePath
    package var depth: Depth
    /// The names of the properties; nil for all.
    private var properties: Set<String>?
    /// The files that a multiget names; nil for any other request.
    package private(set) var named: [FilePath]?
    /// The component that a query of a calendar selects, `VEVENT`.
    private var component: String?

    /// Nil for a request that is no PROPFIND and no REPORT, and for one whose body is no XML that can be read.
    package init?(_ request: RequestHead, body: [UInt8]) {
        collection = FilePath(request.target)
        switch (request.method.rawValue, request.fields.value(of: "depth")) {
        case ("PROPFIND", "0"?): depth = .itself
        case ("PROPFIND", "1"?), ("REPORT", _): depth = .members
        case ("PROPFIND", _): depth = .all
        default: return nil
        }
        guard !body.isEmpty else { return }
        do {
            try XMLReader.read(body) { tag in
                note(tag)
                return true
            }
        } catch { return nil }
    }

    private mutating func note(_ tag: XMLReader.Tag) {
        guard tag.isStart else {
            if tag.name == "href", tag.path.count == 2 { named?.append(FilePath(href: tag.text.filter { !$0.isWhitespace })) }
            return
        }
        if tag.path.count == 1, ["calendar-multiget", "addressbook-multiget"].contains(tag.name) { named = [] }
        if tag.name == "prop" { properties = properties ?? [] }
        if tag.path.dropLast().last == "prop" { properties?.insert(tag.name) }
        if tag.name == "comp-filter", let name = tag.attributes.first(where: { $0.name == "name" })?.value, name != "VCALENDAR" {
            component = component ?? name
        }
    }

    /// The paths that the answer may have to show besides those that the server lists; nil if they are more than are followed.
    package func shown(by fold: FileFold) -> Set<FilePath>? {
        if let named { return Set(named) }
        guard depth != .itself else { return [collection] }
        return fold.created(within: collection, isDeep: depth == .all)?.union([collection])
    }

    /// True if the answer depends on the contents of files.
    package var readsContents: Bool {
        component != nil || properties?.contains("calendar-data") == true || properties?.contains("address-data") == true
    }

    /// True if a query of a calendar selects this content.
    package func selects(_ content: [UInt8]) -> Bool {
        component.map { content.firstRange(of: Array("BEGIN:\($0)".utf8)) != nil } ?? true
    }

    /// True if the element of a file names each property that the request asks for.
    package func isAnswered(by element: [UInt8]) -> Bool {
        guard let properties else { return true }
        var names: Set<String> = []
        try? XMLReader.read(element, encoding: "UTF-8") { tag in
            names.insert(tag.name)
            return true
        }
        return properties.isSubset(of: names)
    }

    /// Returns the element of a file that its client has written.
    /// - Parameters:
    ///   - etag: The tag under which the file is read back.
    ///   - content: Its bytes, if `readsContents`.
    package func response(
        for path: FilePath, _ write: FileWrite, isCollection: Bool, etag: String?, content: [UInt8]? = nil
    ) -> [UInt8] {
        let date = HTTPDate.format(write.at)
        var values: [(name: String, value: String)] = [
            ("displayname", path.name), ("getlastmodified", date), ("creationdate", RFC3339.format(write.at)),
            ("resourcetype", isCollection ? "<D:collection/>" : ""),
        ]
        if !isCollection {
            values.append(("getcontentlength", String(write.length)))
            values.append(("getcontenttype", write.contentType ?? "application/octet-stream"))
            if let etag { values.append(("getetag", etag)) }
        }
        var text = ""
        for (name, value) in values where properties?.contains(name) ?? true {
            let inner = name == "resourcetype" ? value : String(decoding: XMLText.encoded(value), as: UTF8.self)
            text += "<D:\(name)>\(inner)</D:\(name)>"
        }
        for (name, space) in [("calendar-data", "caldav"), ("address-data", "carddav")] where properties?.contains(name) == true {
            guard let content else { continue }
            let inner = String(decoding: XMLText.encoded(String(decoding: content, as: UTF8.self)), as: UTF8.self)
            text += "<C:\(name) xmlns:C=\"urn:ietf:params:xml:ns:\(space)\">\(inner)</C:\(name)>"
        }
        let target = isCollection ? (path.target.hasSuffix("/") ? path.target : path.target + "/") : path.target
        return Self.element(target, "<D:propstat><D:prop>\(text)</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>")
    }

    /// Returns the element of a file that is not there, as a multiget answers for it.
    package func absence(of path: FilePath) -> [UInt8] { Self.element(path.target, "<D:status>HTTP/1.1 404 Not Found</D:status>") }

    private static func element(_ target: String, _ rest: String) -> [UInt8] {
        Array("<D:response xmlns:D=\"DAV:\"><D:href>".utf8) + XMLText.encoded(target) + Array("</D:href>\(rest)</D:response>".utf8)
    }
}
