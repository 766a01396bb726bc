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
    /// The namespaces that the root declares, as attributes.
    private var namespaces: [UInt8] = []
    /// The place of the root's end tag.
    private var end = 0

    /// Nil for bytes that are no multistatus document.
    package init?(_ body: [UInt8]) {
        self.body = body
        var depth = 0
        var (start, href): (Int?, Range<Int>?) = (nil, nil)
        for tag in XMLTags(body) {
            switch (tag.kind, depth, tag.name) {
            case (.start, 0, "multistatus"): namespaces = Self.attributes(of: body[tag.range])
            case (.start, 2, "href"), (.start, 1, "response"):
                if depth == 1 { (start, href) = (tag.range.lowerBound, nil) }
                if depth == 2 { href = href ?? tag.range.upperBound..<tag.range.upperBound }
            case (.start, 0, _): return nil
            case (.end, 3, "href"): if let begin = href, begin.isEmpty { href = begin.lowerBound..<tag.range.lowerBound }
            case (.end, 2, "response"):
                if let start, let href { note(element: start..<tag.range.upperBound, href: href) }
            case (.end, 1, "multistatus"): end = tag.range.lowerBound
            default: break
            }
            depth += tag.kind == .start ? 1 : tag.kind == .end ? -1 : 0
        }
        guard end > 0 else { return nil }
    }

    private mutating func note(element: Range<Int>, href: Range<Int>) {
        let text = XMLText.decoded(body[href]).filter { !$0.isWhitespace }
        responses.append(Response(path: FilePath(href: text), element: element, href: href, isCollection: text.hasSuffix("/")))
    }

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
        let tag = XMLTags(element).first { _ in true }?.range ?? 0..<0
        guard element[tag].firstRange(of: Array("xmlns".utf8)) == nil, let end = element[tag].firstIndex(where: Self.endsName) else {
            return element
        }
        return element[..<end] + namespaces + element[end...]
    }

    /// The attributes of a tag, with the space before each.
    private static func attributes(of tag: ArraySlice<UInt8>) -> [UInt8] { tag.drop { !endsName($0) }.dropLast() }

    private static func endsName(_ byte: UInt8) -> Bool { [9, 10, 13, 32, UInt8(ascii: ">")].contains(byte) }

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
