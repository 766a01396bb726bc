// Arguments of the cache commands, checked before the server is called (docs/reference/cli.md#cache: bad usage is 64).
import ArgumentParser
import HTTPTypes
import RockpoolCore

/// An absolute URL in the cache's form: host in lower case, no default port.
struct CacheURL: Hashable, Sendable {
    let text: String

    /// Throws the reason if `text` is not an absolute URL.
    init(_ text: String) throws(Refusal) { self.text = try RequestHead(url: text).url }

    /// Parses an argument. Throws a usage error with the reason.
    static func argument(from text: String) throws -> CacheURL {
        do throws(Refusal) { return try CacheURL(text) } catch { throw ValidationError(error.detail) }
    }
}

/// A request field, `Name: value`.
struct RequestField: Hashable, Sendable {
    let name: String
    let value: String

    var line: String { "\(name): \(value)" }

    /// Parses an argument. Throws a usage error if it is not a field.
    static func argument(from text: String) throws -> RequestField {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let value = String((parts.last ?? "").drop { $0 == " " || $0 == "\t" })
        guard parts.count == 2, HTTPField.Name(String(parts[0])) != nil, HTTPField.isValidValue(value) else {
            throw ValidationError("a header is written Name: value")
        }
        return RequestField(name: String(parts[0]), value: value)
    }
}

/// The list of URLs in a file: one per line; empty lines and lines that begin with `#` are ignored.
enum URLList {
    /// Throws a usage failure that names the first bad line.
    static func parse(_ text: String, named name: String) throws(CommandFailure) -> [CacheURL] {
        var urls: [CacheURL] = []
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = line.trimming
            if line.isEmpty || line.hasPrefix("#") { continue }
            do throws(Refusal) {
                urls.append(try CacheURL(String(line)))
            } catch {
                throw CommandFailure(.usage, "\(name):\(index + 1): \(error.detail)".inOneLine)
            }
        }
        return urls
    }
}

extension Substring {
    fileprivate var trimming: Substring {
        var text = drop(while: \.isWhitespace)
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}
