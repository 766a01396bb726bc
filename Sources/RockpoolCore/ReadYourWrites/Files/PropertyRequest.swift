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

// MARK: - Answers of 207

/// A multistatus document that is changed without being written anew: everything that is not replaced stays as its server wrote it
/// (RFC 4918 §13, §14.16; docs/outbox.md#files-and-collections).
package struct Multistatus: Sendable {
    /// The element of one resource.
    package struct Response: Sendable {
        package var path: FilePath
        /// The bytes of the element.
        package var element: Range<Int>
        /// The bytes of its `href`.
        package var href: Range<Int>
        /// True if `href` ends in a slash, as that of a collection does.
        package var isCollection: Bool
    }

    package let body: [UInt8]
    package private(set) var responses: [Response] = []
    /// The places of the responses by their paths; of several with one path, the first.
    private var places: [FilePath: Int] = [:]
    /// The namespaces that the root declares.
    private var namespaces: [(name: String, value: String)] = []
    /// The place of the root's end tag.
    private var end = 0

    /// Nil for bytes that are no multistatus document, or none in UTF-8.
    package init?(_ body: [UInt8]) {
        self.body = body
        var (start, text) = (0, "")
        var (begin, href): (Int?, Range<Int>?) = (nil, nil)
        do {
            try XMLReader.read(body, encoding: "UTF-8") { tag in
                switch (tag.path.count, tag.name) {
                case (1, "multistatus") where tag.isStart: namespaces = Self.namespaces(of: tag)
                case (1, "multistatus"): end = tag.range.isEmpty ? 0 : tag.range.lowerBound
                case (1, _): return false
                case (2, "response") where tag.isStart: (start, begin, href) = (tag.range.lowerBound, nil, nil)
                case (2, "response"): if let href { note(element: start..<tag.range.upperBound, href: href, text: text) }
                case (3, "href") where tag.isStart && tag.path[1] == "response": begin = begin ?? tag.range.upperBound
                case (3, "href"):
                    // A single tag has no place for another path.
                    if tag.range.isEmpty { begin = nil }
                    if href == nil, let begin { (href, text) = (begin..<tag.range.lowerBound, tag.text) }
                default: break
                }
                return true
            }
        } catch { return nil }
        guard end > 0 else { return nil }
    }

    private mutating func note(element: Range<Int>, href: Range<Int>, text: String) {
        let text = text.filter { !$0.isWhitespace }
        let path = FilePath(href: text)
        if places[path] == nil { places[path] = responses.count }
        responses.append(Response(path: path, element: element, href: href, isCollection: text.hasSuffix("/")))
    }

    private static func namespaces(of tag: XMLReader.Tag) -> [(name: String, value: String)] {
        tag.attributes.filter { $0.name == "xmlns" || $0.name.hasPrefix("xmlns:") }
    }

    /// The response about a path; nil without one.
    package func response(at path: FilePath) -> Response? { places[path].map { responses[$0] } }

    /// Returns the element with another `href`.
    package func element(_ response: Response, at path: FilePath) -> [UInt8] {
        guard path != response.path else { return Array(body[response.element]) }
        let target = response.isCollection && path.target != "/" ? path.target + "/" : path.target
        return body[response.element.lowerBound..<response.href.lowerBound] + XMLText.encoded(target)
            + body[response.href.upperBound..<response.element.upperBound]
    }

    /// Returns the element for another document, with the namespaces of this one.
    package func exported(_ response: Response, at path: FilePath) -> [UInt8] {
        let element = element(response, at: path)
        var first: XMLReader.Tag?
        try? XMLReader.read(element, encoding: "UTF-8") { tag in
            first = tag
            return false
        }
        guard let first, let place = element[first.range].firstIndex(where: Self.endsName) else { return element }
        let declared = Set(first.attributes.map(\.name))
        let missing = namespaces.filter { !declared.contains($0.name) }
            .flatMap { Array(" \($0.name)=\"".utf8) + XMLText.attribute($0.value) + [FieldByte.quote] }
        return element[..<place] + missing + element[place...]
    }

    private static func endsName(_ byte: UInt8) -> Bool { [9, 10, 13, 32, UInt8(ascii: "/"), UInt8(ascii: ">")].contains(byte) }

    /// Returns the document with these elements instead of its own.
    package func with(_ elements: [[UInt8]]) -> [UInt8] {
        var result = Array(body[..<(responses.first?.element.lowerBound ?? end)])
        for element in elements { result += element }
        // What follows the last resource, such as a token, stays.
        return result + body[(responses.last?.element.upperBound ?? end)...]
    }

    /// A document without resources.
    package static let empty = Multistatus(start: #"<?xml version="1.0" encoding="utf-8"?><D:multistatus xmlns:D="DAV:">"#)

    private init(start: String) {
        body = Array("\(start)</D:multistatus>".utf8)
        end = start.utf8.count
    }
}
