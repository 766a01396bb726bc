// XML of others, read by expat (https://www.w3.org/TR/xml/, https://libexpat.github.io/doc/), and text written as character data.
import CExpat

/// Reads documents of clients and servers in linear time, within limits.
///
/// A document that declares a type is not read, so there are no entities but the five predefined ones and those of single characters. Prefixes
/// of namespaces are left out of names.
enum XMLReader {
    /// The longest document in bytes, the deepest element, and the most elements.
    static let (byteLimit, depthLimit, elementLimit) = (Int.mib(16), 128, 500_000)

    /// Why a document is not read to its end.
    enum Failure: Error, Hashable {
        case malformed
        /// It is longer or deeper than is read, or has more elements.
        case tooLarge
        /// It declares the type of its document, whose name is that of its root.
        case hasDocumentType(name: String)
        /// The task was cancelled: the client has left.
        case cancelled
    }

    /// The start or the end of an element.
    struct Tag {
        var isStart: Bool
        /// The names of the elements from the root to this one.
        var path: [String]
        /// The place of the tag in the document. For the end of an element that is a single tag: empty, behind that tag.
        var range: Range<Int>
        /// For a start; names with their prefix, values without references.
        var attributes: [(name: String, value: String)] = []
        /// For an end: the character data since the last tag, which is all of an element without elements.
        var text = ""

        var name: String { path.last ?? "" }
    }

    /// Passes each tag to `visit`, in the order of the document.
    /// - Parameters:
    ///   - encoding: the encoding; nil for the one that the document declares. Places are those of its own bytes in any encoding.
    ///   - visit: returns false to leave the rest unread.
    /// - Throws: after what precedes the fault was visited.
    static func read(_ bytes: [UInt8], encoding: String? = nil, visit: (Tag) -> Bool) throws(Failure) {
        guard bytes.count <= byteLimit else { throw .tooLarge }
        let failure = withoutActuallyEscaping(visit) { visit in XMLReading(visit).failure(reading: bytes, encoding: encoding) }
        if let failure { throw failure }
    }

    /// The name of a document's root, also if what follows its tag is no XML; nil without one.
    static func root(of bytes: [UInt8]) -> String? {
        let document = Array(bytes.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) })
        // An encoding that expat does not know has the letters of ASCII.
        return root(of: document, encoding: nil) ?? root(of: document, encoding: "ISO-8859-1")
    }

    private static func root(of document: [UInt8], encoding: String?) -> String? {
        var root: String?
        do {
            try read(document, encoding: encoding) { tag in
                root = tag.name
                return false
            }
        } catch { if case .hasDocumentType(let name) = error { root = name } }
        return root
    }
}

/// One use of expat's parser. Its callbacks run within `failure(reading:encoding:)`.
@safe private final class XMLReading {
    private let visit: (XMLReader.Tag) -> Bool
    private var parser: XML_Parser?
    private var path: [String] = []
    private var text: [UInt8] = []
    private var count = 0
    private var isStopped = false
    private var failure: XMLReader.Failure?

    init(_ visit: @escaping (XMLReader.Tag) -> Bool) { self.visit = visit }

    /// Reads a document; returns nil if all of it was read, or as much as `visit` wants.
    func failure(reading bytes: [UInt8], encoding: String?) -> XMLReader.Failure? {
        guard let parser = unsafe XML_ParserCreate(encoding) else { return .tooLarge }
        unsafe self.parser = parser
        defer {
            unsafe self.parser = nil
            unsafe XML_ParserFree(parser)
        }
        unsafe XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
        unsafe XML_SetElementHandler(
            parser, { unsafe XMLReading.of($0)?.start($1, $2) }, { data, _ in unsafe XMLReading.of(data)?.end() })
        unsafe XML_SetCharacterDataHandler(parser) { unsafe XMLReading.of($0)?.note(UnsafeBufferPointer(start: $1, count: Int($2))) }
        unsafe XML_SetStartDoctypeDeclHandler(parser) { data, name, _, _, _ in
            guard let reading = unsafe XMLReading.of(data), let name = unsafe name else { return }
            unsafe reading.stop(.hasDocumentType(name: XMLReading.local(String(cString: name))))
        }
        let status = unsafe bytes.withUnsafeBytes { source in
            unsafe XML_Parse(parser, source.bindMemory(to: CChar.self).baseAddress, Int32(clamping: source.count), 1)
        }
        return isStopped ? failure : status == XML_STATUS_OK ? nil : .malformed
    }

    private static func of(_ data: UnsafeMutableRawPointer?) -> XMLReading? {
        unsafe data.map { unsafe Unmanaged<XMLReading>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func local(_ name: String) -> String {
        name.utf8.lastIndex(of: UInt8(ascii: ":")).map { String(name[name.utf8.index(after: $0)...]) } ?? name
    }

    private func stop(_ failure: XMLReader.Failure?) {
        guard !isStopped else { return }
        isStopped = true
        self.failure = failure
        if let parser = unsafe parser { unsafe XML_StopParser(parser, 0) }
    }

    private var range: Range<Int> {
        guard let parser = unsafe parser else { return 0..<0 }
        let start = unsafe Int(XML_GetCurrentByteIndex(parser))
        return unsafe start..<start + Int(XML_GetCurrentByteCount(parser))
    }

    private func pass(_ tag: XMLReader.Tag) { if !visit(tag) { stop(nil) } }

    private func start(_ name: UnsafePointer<CChar>?, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?) {
        guard !isStopped, let name = unsafe name else { return }
        count += 1
        guard count <= XMLReader.elementLimit, path.count < XMLReader.depthLimit else { return stop(.tooLarge) }
        guard !count.isMultiple(of: 1_024) || !Task.isCancelled else { return stop(.cancelled) }
        unsafe path.append(Self.local(String(cString: name)))
        text.removeAll(keepingCapacity: true)
        unsafe pass(XMLReader.Tag(isStart: true, path: path, range: range, attributes: Self.pairs(attributes)))
    }

    private func end() {
        guard !isStopped else { return }
        pass(XMLReader.Tag(isStart: false, path: path, range: range, text: String(decoding: text, as: UTF8.self)))
        text.removeAll(keepingCapacity: true)
        _ = path.popLast()
    }

    private func note(_ data: UnsafeBufferPointer<CChar>) {
        guard !isStopped else { return }
        unsafe text.append(contentsOf: data.lazy.map { UInt8(bitPattern: $0) })
    }

    /// The names and values that alternate in a list of expat's, which a null pointer ends.
    private static func pairs(_ list: UnsafeMutablePointer<UnsafePointer<CChar>?>?) -> [(name: String, value: String)] {
        guard var next = unsafe list else { return [] }
        var pairs: [(name: String, value: String)] = []
        while let name = unsafe next[0], let value = unsafe next[1] {
            unsafe pairs.append((String(cString: name), String(cString: value)))
            unsafe next += 2
        }
        return pairs
    }
}

/// Character data, and values of attributes in double quotes.
enum XMLText {
    static func encoded(_ text: String) -> [UInt8] {
        text.utf8.flatMap { byte -> [UInt8] in
            switch byte {
            case UInt8(ascii: "&"): Array("&amp;".utf8)
            case UInt8(ascii: "<"): Array("&lt;".utf8)
            case UInt8(ascii: ">"): Array("&gt;".utf8)
            // The only characters below the space that a document may hold.
            case 0..<0x20 where ![9, 10, 13].contains(byte): []
            default: [byte]
            }
        }
    }

    static func attribute(_ text: String) -> [UInt8] { encoded(text).flatMap { $0 == FieldByte.quote ? Array("&quot;".utf8) : [$0] } }
}
