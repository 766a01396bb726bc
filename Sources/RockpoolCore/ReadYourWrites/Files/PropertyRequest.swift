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

    /// Nil for a request that is no PROPFIND and no REPORT.
    package init?(_ request: RequestHead, body: [UInt8]) {
        collection = FilePath(request.target)
        switch (request.method.rawValue, request.fields.value(of: "depth")) {
        case ("PROPFIND", "0"?): depth = .itself
        case ("PROPFIND", "1"?), ("REPORT", _): depth = .members
        case ("PROPFIND", _): depth = .all
        default: return nil
        }
        read(body)
    }

    private mutating func read(_ body: [UInt8]) {
        var (path, href) = ([String](), 0)
        for tag in XMLTags(body) {
            switch tag.kind {
            case .start: path.append(tag.name)
            case .end: if !path.isEmpty { path.removeLast() }
            case .empty: break
            }
            guard tag.kind != .end else {
                let text = XMLText.decoded(body[min(href, tag.range.lowerBound)..<tag.range.lowerBound]).filter { !$0.isWhitespace }
                if tag.name == "href" { named?.append(FilePath(href: text)) }
                continue
            }
            let parent = tag.kind == .start ? path.dropLast().last : path.last
            if tag.name == "href" { href = tag.range.upperBound }
            if ["calendar-multiget", "addressbook-multiget"].contains(tag.name) { named = [] }
            if tag.name == "prop" { properties = properties ?? [] }
            if parent == "prop" { properties?.insert(tag.name) }
            if tag.name == "comp-filter" { note(component: body[tag.range]) }
        }
    }

    private mutating func note(component tag: ArraySlice<UInt8>) {
        let text = String(decoding: tag, as: UTF8.self).replacing("'", with: "\"")
        guard let start = text.firstRange(of: "name=\"")?.upperBound else { return }
        let name = String(text[start...].prefix { $0 != "\"" })
        if name != "VCALENDAR" { component = component ?? name }
    }

    /// True if the request lists this path.
    package func lists(_ path: FilePath) -> Bool {
        if let named { return named.contains(path) }
        return path == collection || depth == .members && path.parent == collection || depth == .all && collection.contains(path)
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
        return properties.isSubset(of: XMLTags(element).map(\.name))
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
