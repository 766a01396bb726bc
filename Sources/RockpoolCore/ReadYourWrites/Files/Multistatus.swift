// The body of a 207 response: one element for each resource (RFC 4918 §13, §14.16; docs/outbox.md#files-and-collections).

/// A multistatus document that is changed without being written anew: everything that is not replaced stays as its server wrote it.
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
