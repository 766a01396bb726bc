// The directives of `Cache-Control`, parsed so that a malformed field never permits more caching than intended (RFC 9111 §5.2).
package import HTTPTypes
import RawStructuredFieldValues

/// The directives of one message. Of a duplicate directive the stricter value holds; an invalid number of seconds counts as zero.
package struct CacheControl: Hashable, Sendable {
    /// The scope of a directive that may name fields: `no-cache="Set-Cookie"`.
    package enum Scope: Hashable, Sendable {
        case absent
        case all
        case fields([HTTPField.Name])
    }

    /// In a response, its lifetime (§5.2.2.1); in a request, the greatest age it accepts (§5.2.1.1).
    package var maxAge: TimeSpan?
    /// The lifetime in shared caches; implies `proxy-revalidate` (§5.2.2.10).
    package var sMaxAge: TimeSpan?
    /// Reuse requires validation: of the whole response, or of the fields named (§5.2.2.4). In a request always the whole (§5.2.1.4).
    package var noCache = Scope.absent
    package var noStore = false
    /// Intended for a single user: the whole response, or the fields named (§5.2.2.7).
    package var isPrivate = Scope.absent
    package var isPublic = false
    /// Must not be served stale (§5.2.2.2).
    package var mustRevalidate = false
    /// Must not be served stale by a shared cache (§5.2.2.8).
    package var proxyRevalidate = false
    /// Storable only by caches that understand the status code, which then ignore `no-store` (§5.2.2.3).
    package var mustUnderstand = false
    /// The response does not change while it is fresh (RFC 8246).
    package var immutable = false
    /// The staleness up to which it may be served while it is revalidated in the background (RFC 5861 §3).
    package var staleWhileRevalidate: TimeSpan?
    /// The staleness up to which it may be served in place of an error; in requests too (RFC 5861 §4).
    package var staleIfError: TimeSpan?
    /// Serve from the cache or answer 504 (§5.2.1.7).
    package var onlyIfCached = false
    /// The staleness a request accepts (§5.2.1.2); `.forever` when it names no limit.
    package var maxStale: TimeSpan?
    /// The time for which the response must remain fresh (§5.2.1.3).
    package var minFresh: TimeSpan?
    package var noTransform = false

    /// Without any directive.
    package init() {}

    /// Parses the directives of the field `name`, all its lines combined.
    package init(_ fields: HTTPFields, name: HTTPField.Name = .cacheControl) {
        for field in fields where field.name == name { read(field.value) }
    }

    /// Parses a request's directives. `Pragma: no-cache` counts as `no-cache` if there is no `Cache-Control` (RFC 9111 §5.4).
    package init(request fields: HTTPFields) {
        var pragma: String?
        var isGiven = false
        for field in fields {
            switch field.name.canonicalName {
            case "cache-control":
                isGiven = true
                read(field.value)
            case "pragma": pragma = pragma.map { "\($0),\(field.value)" } ?? field.value
            default: break
            }
        }
        guard !isGiven, let pragma else { return }
        if FieldList.members(of: pragma).contains(where: { FieldByte.equal($0.utf8, "no-cache".utf8) }) { noCache = .all }
    }

    /// True if a stale response must not be served without validation, whatever the request allows (RFC 9111 §4.2.4). `proxy-revalidate`
    /// and `s-maxage` bind shared caches only, so they do not apply to a `private` response.
    package var forbidsStale: Bool {
        mustRevalidate || noCache == .all || (isPrivate != .all && (proxyRevalidate || sMaxAge != nil))
    }

    private mutating func read(_ value: String) {
        for directive in DirectiveSequence(value) { apply(directive) }
    }

    private mutating func apply(_ directive: Directive) {
        switch directive.name {
        case "no-store": noStore = true
        case "no-cache": noCache = noCache.widened(by: directive)
        case "private": isPrivate = isPrivate.widened(by: directive)
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "must-understand": mustUnderstand = true
        case "only-if-cached": onlyIfCached = true
        case "no-transform": noTransform = true
        // Directives that permit more count only when nothing else stands between their commas.
        case "public": isPublic = isPublic || !directive.isMalformed
        case "immutable": immutable = immutable || !directive.isMalformed
        case "max-age": maxAge = stricter(maxAge, or: directive.seconds ?? .zero)
        case "s-maxage": sMaxAge = stricter(sMaxAge, or: directive.seconds ?? .zero)
        case "stale-while-revalidate": staleWhileRevalidate = stricter(staleWhileRevalidate, or: directive.seconds ?? .zero)
        case "stale-if-error": staleIfError = stricter(staleIfError, or: directive.seconds ?? .zero)
        case "max-stale":
            let isUnlimited = directive.argument == nil && !directive.isMalformed
            maxStale = stricter(maxStale, or: isUnlimited ? .forever : directive.seconds ?? .zero)
        case "min-fresh": minFresh = max(minFresh ?? .zero, directive.seconds ?? .zero)
        default: break
        }
    }

    private func stricter(_ given: TimeSpan?, or new: TimeSpan) -> TimeSpan { given.map { min($0, new) } ?? new }
}

extension CacheControl.Scope {
    /// The fields named; empty for `.absent` and `.all`.
    package var names: [HTTPField.Name] {
        if case .fields(let names) = self { names } else { [] }
    }

    /// Unreadable field names extend the directive to the whole response.
    fileprivate func widened(by directive: Directive) -> Self {
        guard let argument = directive.argument, !directive.isMalformed, self != .all else { return .all }
        let members = FieldList.members(of: argument)
        let names = members.compactMap { HTTPField.Name(String($0)) }
        guard !names.isEmpty, names.count == members.count else { return .all }
        return .fields(self.names + names.filter { !self.names.contains($0) })
    }
}

/// Targeted cache control fields: directives for caches like this one, which override Cache-Control and Expires (RFC 9213).
extension CacheControl {
    /// The targeted fields this cache obeys, in order of precedence: its own, then `CDN-Cache-Control`, because declaring an upstream makes
    /// this cache one that the origin's operator placed in front of it (RFC 9213 §2.2, §3.1).
    package static let targetedFieldNames = ["rockpool-cache-control", "cdn-cache-control"]

    /// True if a response has directives for this cache, or for all.
    static func isStated(in fields: HTTPFields) -> Bool {
        fields.contains(.cacheControl) || targetedFieldNames.contains { fields.value(of: $0) != nil }
    }

    /// The directives that govern a response: from the first targeted field that is present, valid and not empty, else from
    /// `Cache-Control`.
    package static func governing(in fields: HTTPFields) -> (directives: CacheControl, isTargeted: Bool) {
        for name in targetedFieldNames {
            if let value = fields.value(of: name), let directives = CacheControl(targeted: value) { return (directives, true) }
        }
        return (CacheControl(fields), false)
    }

    /// Directives with a number of seconds as their value.
    private static let numeric: Set<String> = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

    /// Parses a structured dictionary; nil if the value is not a dictionary, is empty, or has a non-integer where seconds are required
    /// (RFC 9213 §2.1).
    private init?(targeted value: String) {
        var parser = StructuredFieldValueParser(Array(value.utf8))
        guard let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty else { return nil }
        var rewritten: [String] = []
        for (name, member) in members {
            guard case .item(let item) = member else {
                if Self.numeric.contains(name) { return nil }
                rewritten.append("\(name)=?")
                continue
            }
            if Self.numeric.contains(name) {
                guard case .integer = item.rfc9651BareItem else { return nil }
            }
            switch item.rfc9651BareItem {
            case .bool(true): rewritten.append(name)
            case .bool(false): continue
            case .integer(let number): rewritten.append("\(name)=\(number)")
            case .string(let text): rewritten.append("\(name)=\(StructuredText.string(text))")
            case .token(let text): rewritten.append("\(name)=\(text)")
            default: rewritten.append("\(name)=?")
            }
        }
        self.init([.cacheControl: rewritten.joined(separator: ", ")])
    }
}

/// A cache directive as written.
struct Directive: Equatable {
    /// In lower case.
    var name: String
    /// Without surrounding quotes; nil without `=`.
    var argument: String?
    /// True if unexpected text stands between the directive and the next comma.
    var isMalformed = false

    /// The argument as delta-seconds; nil if it is not a non-negative integer.
    var seconds: TimeSpan? { isMalformed ? nil : argument.flatMap { DeltaSeconds.parse($0) } }
}

/// Non-negative whole seconds (RFC 9111 §1.2.2).
enum DeltaSeconds {
    /// The value of a number that is too large.
    static let ceiling = Int64(Int32.max) + 1

    /// Parses any number of digits; nil for anything else, including a sign or a fraction.
    static func parse(_ text: some StringProtocol) -> TimeSpan? {
        var value: Int64 = 0
        for byte in text.utf8 {
            guard FieldByte.isDigit(byte) else { return nil }
            value = min(value * 10 + Int64(byte - 0x30), ceiling)
        }
        return text.isEmpty ? nil : .seconds(value)
    }
}

/// The directives of a value in order. Parsing never fails: unreadable text becomes a malformed directive and parsing continues after it,
/// so that a `no-store` behind garbage is still found.
struct DirectiveSequence: Sequence, IteratorProtocol {
    private let bytes: [UInt8]
    private var position = 0

    init(_ value: String) { bytes = Array(value.utf8) }

    mutating func next() -> Directive? {
        while position < bytes.count, !FieldByte.isTokenByte(bytes[position]) { position += 1 }
        guard position < bytes.count else { return nil }
        let name = token().map { String(decoding: $0.map(FieldByte.lowercased), as: UTF8.self) } ?? ""
        var directive = Directive(name: name)
        if position < bytes.count, bytes[position] == FieldByte.equals {
            position += 1
            directive.argument = argument()
        }
        skipSpace()
        directive.isMalformed = position < bytes.count && bytes[position] != FieldByte.comma
        return directive
    }

    private mutating func token() -> ArraySlice<UInt8>? {
        let start = position
        while position < bytes.count, FieldByte.isTokenByte(bytes[position]) { position += 1 }
        return position > start ? bytes[start..<position] : nil
    }

    private mutating func argument() -> String {
        guard position < bytes.count, bytes[position] == FieldByte.quote else {
            return token().map { String(decoding: $0, as: UTF8.self) } ?? ""
        }
        return quoted() ?? ""
    }

    /// The text between quotes; nil, without advancing, if the closing quote is missing.
    private mutating func quoted() -> String? {
        var text: [UInt8] = []
        var index = position + 1
        while index < bytes.count {
            switch bytes[index] {
            case FieldByte.quote:
                position = index + 1
                return String(decoding: text, as: UTF8.self)
            case FieldByte.backslash where index + 1 < bytes.count:
                text.append(bytes[index + 1])
                index += 2
            case let byte:
                text.append(byte)
                index += 1
            }
        }
        return nil
    }

    private mutating func skipSpace() {
        while position < bytes.count, FieldByte.isSpace(bytes[position]) { position += 1 }
    }
}
