// The path of a file or a collection, equal for every spelling of one URL (RFC 3986 §6.2.2, RFC 4918 §5.2; docs/outbox.md#files-and-collections).

/// A path without query, percent-encoding and a slash at its end; empty for the root.
package struct FilePath: Hashable, Sendable {
    package let text: String

    /// - Parameter target: A request's target, or a path, as sent.
    package init(_ target: some StringProtocol) {
        var bytes = FilePath.decoded(target.prefix { $0 != "?" && $0 != "#" }.utf8)
        while bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        text = String(decoding: bytes, as: UTF8.self)
    }

    /// - Parameter href: A path or an absolute URL, as a multistatus names a resource (RFC 4918 §8.3).
    package init(href: String) {
        let authority = href.hasPrefix("/") ? nil : href.firstRange(of: "://")?.upperBound
        self.init(authority.map { href[$0...].drop { $0 != "/" } } ?? href[...])
    }

    /// A path that is not percent-encoded.
    init(escaping text: String) { self.text = String(Substring(text).trimmingSlashes) }

    /// The path without dot segments and empty ones, as most servers read it (RFC 3986 §5.2.4).
    var resolved: FilePath {
        let segments = text.split(separator: "/").reduce(into: [Substring]()) { kept, segment in
            if segment == ".." { _ = kept.popLast() } else if segment != "." { kept.append(segment) }
        }
        return FilePath(text: segments.reduce(into: "") { $0 += "/" + $1 })
    }

    /// The path of what is named so within this collection.
    func appending(_ name: String) -> FilePath { FilePath(escaping: text + "/" + name) }

    private init(text: String) { self.text = text }

    /// The collection that lists it; nil for the root.
    package var parent: FilePath? { text.lastIndex(of: "/").map { FilePath(text: String(text[..<$0])) } }

    /// The collections above it, the nearest first: at most 64.
    package var ancestors: [FilePath] { Array(sequence(first: self, next: \.parent).dropFirst().prefix(64)) }

    /// The last segment.
    package var name: String { text.lastIndex(of: "/").map { String(text[text.index(after: $0)...]) } ?? text }

    /// The targets that may name it: as a file, and as a collection.
    package var targets: [String] {
        let target = target
        return target.hasSuffix("/") ? [target] : [target, target + "/"]
    }

    private static let plain = Set("/:@=,;()$".utf8)

    /// The path in the form of a request's target.
    package var target: String {
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            let isPlain = FieldByte.isTokenByte(byte) && byte != UInt8(ascii: "%") || Self.plain.contains(byte)
            if isPlain { bytes.append(byte) } else { FormEncoding.percentEncode(byte, into: &bytes) }
        }
        return bytes.isEmpty ? "/" : String(decoding: bytes, as: UTF8.self)
    }

    /// True for the path itself and every path below it.
    package func contains(_ other: FilePath) -> Bool {
        other.text.utf8.starts(with: text.utf8)
            && (other.text.utf8.count == text.utf8.count || other.text.utf8.dropFirst(text.utf8.count).first == UInt8(ascii: "/"))
    }

    /// The path below `destination` that corresponds to this one below `source`; nil if it is not there.
    package func moved(from source: FilePath, to destination: FilePath) -> FilePath? {
        guard source.contains(self) else { return nil }
        return FilePath(text: destination.text + Substring(text.utf8.dropFirst(source.text.utf8.count)))
    }

    private static func decoded(_ text: some Collection<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = Array(text)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), rest.count >= 2, let high = FormEncoding.digit(rest[rest.startIndex]),
                let low = FormEncoding.digit(rest[rest.startIndex + 1])
            {
                bytes.append(high << 4 | low)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return bytes
    }
}

extension Substring {
    /// The text without slashes at its end.
    fileprivate var trimmingSlashes: Substring {
        var text = self
        while text.utf8.last == UInt8(ascii: "/") { text.unicodeScalars.removeLast() }
        return text
    }
}
