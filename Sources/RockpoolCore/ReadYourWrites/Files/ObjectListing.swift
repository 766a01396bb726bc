// The list of a bucket with the objects that its client has written (S3 `ListObjects`, `ListObjectsV2`; docs/outbox.md#s3).
import HTTPTypes

/// A list of a bucket, which is changed without being written anew.
package struct ObjectListing: Sendable {
    private struct Element {
        var name: String
        var range: Range<Int>
    }

    private let body: [UInt8]
    private let bucket: FilePath
    private let prefix: String
    private let delimiter: String
    private let isEncoded: Bool
    private var objects: [Element] = []
    private var prefixes: [Element] = []
    private var count: Range<Int>?
    private var end = 0

    /// Nil for a request or a body that is no complete list of a bucket, and for one of several pages.
    package init?(_ request: RequestHead, body: [UInt8]) {
        let query = request.target.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        var parameters: [String: String] = [:]
        for pair in query.utf8.split(separator: UInt8(ascii: "&")) {
            let name = pair.prefix { $0 != FieldByte.equals }
            parameters[FormEncoding.text(of: name)] = FormEncoding.text(of: pair.dropFirst(name.count + 1))
        }
        let known = ["list-type", "prefix", "delimiter", "encoding-type", "max-keys", "fetch-owner", "x-id"]
        guard request.method == .get, parameters.keys.allSatisfy(known.contains) else { return nil }
        self.body = body
        bucket = FilePath(request.target)
        prefix = parameters["prefix"] ?? ""
        delimiter = parameters["delimiter"] ?? ""
        isEncoded = parameters["encoding-type"] == "url"
        guard read() else { return nil }
    }

    /// Reads the elements; false if the document is no list, or only a part of one.
    private mutating func read() -> Bool {
        var (start, content, name) = (0, 0, "")
        var isWhole = true
        do {
            try XMLReader.read(body, encoding: "UTF-8") { tag in
                if tag.isStart {
                    if tag.path.count == 1 { isWhole = tag.name == "ListBucketResult" }
                    if tag.path.count == 2 { (start, name) = (tag.range.lowerBound, "") }
                    content = tag.range.upperBound
                    return isWhole
                }
                let element = start..<tag.range.upperBound
                switch tag.path.dropFirst() {
                case []: end = tag.range.isEmpty ? 0 : tag.range.lowerBound
                case ["Contents", "Key"], ["CommonPrefixes", "Prefix"]: name = tag.text
                case ["IsTruncated"]: isWhole = tag.text != "true"
                case ["KeyCount"]: count = tag.range.isEmpty ? nil : content..<tag.range.lowerBound
                case ["Contents"]: objects.append(Element(name: name, range: element))
                case ["CommonPrefixes"]: prefixes.append(Element(name: name, range: element))
                default: break
                }
                return isWhole
            }
        } catch { return false }
        return isWhole && end > 0
    }

    /// Returns the list with the client's writes: nil if they change nothing. It is not clear if they are more than are followed.
    /// - Parameter etag: The tag under which a written object is read back.
    package func folded(with fold: FileFold, etag: (FileWrite) -> String?) -> (body: [UInt8]?, isClear: Bool) {
        guard let created = fold.created(within: bucket, isDeep: true) else { return (nil, false) }
        let fold = fold.indexed
        var isClear = true
        var kept: [(key: String, bytes: [UInt8])] = []
        var (isChanged, seen) = (false, Set<FilePath>())
        for object in objects {
            let key = isEncoded ? FilePath(object.name).text : object.name
            let path = bucket.appending(key)
            seen.insert(path)
            switch fold.state(of: path) {
            case .server, .collection: kept.append((key, Array(body[object.range])))
            case .unclear:
                isClear = false
                kept.append((key, Array(body[object.range])))
            case .absent: isChanged = true
            case .content(let write):
                isChanged = true
                kept.append((key, element(key, write, etag: etag(write))))
            }
        }
        var shown = Set(prefixes.map { isEncoded ? FilePath($0.name + "x").text : $0.name + "x" })
        var added: [[UInt8]] = []
        for path in created where !seen.contains(path) {
            let key = String(path.text.dropFirst(bucket.text.count + 1))
            guard key.hasPrefix(prefix), case .content(let write) = fold.state(of: path) else { continue }
            let rest = key.dropFirst(prefix.count)
            if !delimiter.isEmpty, let end = rest.firstRange(of: delimiter)?.upperBound {
                let common = prefix + rest[..<end]
                guard shown.insert(common + "x").inserted else { continue }
                added.append(Array("<CommonPrefixes><Prefix>".utf8) + written(common) + Array("</Prefix></CommonPrefixes>".utf8))
            } else {
                kept.append((key, element(key, write, etag: etag(write))))
            }
            isChanged = true
        }
        guard isChanged else { return (nil, isClear) }
        kept.sort { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        return (assembled(kept.map(\.bytes) + prefixes.map { Array(body[$0.range]) } + added), isClear)
    }

    /// Returns the document with these elements at its end instead of its own.
    private func assembled(_ elements: [[UInt8]]) -> [UInt8] {
        var (result, place) = ([UInt8](), 0)
        var cuts = (objects + prefixes).map { ($0.range, [UInt8]()) }
        if let count { cuts.append((count, Array(String(elements.count).utf8))) }
        for (range, bytes) in cuts.sorted(by: { $0.0.lowerBound < $1.0.lowerBound }) {
            result += body[place..<range.lowerBound] + bytes
            place = range.upperBound
        }
        result += body[place..<end]
        for element in elements { result += element }
        return result + body[end...]
    }

    private func element(_ key: String, _ write: FileWrite, etag: String?) -> [UInt8] {
        let tag = etag.map { "<ETag>\(String(decoding: XMLText.encoded($0), as: UTF8.self).replacing("\"", with: "&quot;"))</ETag>" } ?? ""
        let rest =
            "<LastModified>\(RFC3339.format(write.at))</LastModified>\(tag)<Size>\(write.length)</Size>"
            + "<StorageClass>STANDARD</StorageClass>"
        return Array("<Contents><Key>".utf8) + written(key) + Array("</Key>\(rest)</Contents>".utf8)
    }

    /// A key in the form that the request asked for.
    private func written(_ key: String) -> [UInt8] {
        guard isEncoded else { return XMLText.encoded(key) }
        let target = FilePath(escaping: key).target
        return XMLText.encoded(key.hasSuffix("/") ? target + "/" : target)
    }
}
