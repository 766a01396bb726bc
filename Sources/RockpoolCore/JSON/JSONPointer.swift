// JSON Pointer: references a location within a JSON value (RFC 6901).

/// A JSON Pointer: `""` is the whole value, `/a/0` the first element of member `a`.
package struct JSONPointer: Hashable, Sendable {
    /// The reference tokens, unescaped.
    package var tokens: [String]

    package init(tokens: [String]) { self.tokens = tokens }

    /// Nil unless empty or starting with `/`, with `~` only in `~0` and `~1`.
    package init?(_ text: String) {
        guard !text.isEmpty else {
            self.init(tokens: [])
            return
        }
        // Splits by scalars: a slash and a combining mark that starts a name form a single character.
        guard text.utf8.first == UInt8(ascii: "/") else { return nil }
        var tokens: [String] = []
        for raw in text.unicodeScalars.dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let token = Self.unescaped(raw) else { return nil }
            tokens.append(token)
        }
        self.init(tokens: tokens)
    }

    /// The pointer in the syntax of RFC 6901 §3.
    package var text: String {
        tokens.map { "/" + $0.escaping(["~": "~0", "/": "~1"]) }.joined()
    }

    /// The value at this location; nil if there is none.
    package func get(in value: JSONValue) -> JSONValue? {
        var current = value
        for token in tokens {
            switch current {
            case .object(let members):
                guard let member = members[token] else { return nil }
                current = member
            case .array(let elements):
                guard let index = Self.index(of: token), index < elements.count else { return nil }
                current = elements[index]
            default: return nil
            }
        }
        return current
    }

    /// Sets the value at this location: replaces the existing value, adds a member, or appends to an array (`-` or its count). Returns
    /// false, without a change, if the parent does not exist or the array index is out of range.
    @discardableResult
    package func set(_ new: JSONValue, in value: inout JSONValue) -> Bool {
        Self.update(&value, at: tokens[...]) { _ in new }
    }

    /// Removes the value at this location from its parent. False if there is none, or if the pointer refers to the whole value.
    @discardableResult
    package func remove(from value: inout JSONValue) -> Bool {
        guard !tokens.isEmpty, get(in: value) != nil else { return false }
        return Self.update(&value, at: tokens[...]) { _ in nil }
    }

    private static func update(_ value: inout JSONValue, at path: ArraySlice<String>, _ change: (JSONValue?) -> JSONValue?) -> Bool {
        guard let token = path.first else {
            guard let new = change(value) else { return false }
            value = new
            return true
        }
        let isLast = path.count == 1
        switch value {
        case .object(var members):
            if isLast {
                members[token] = change(members[token])
            } else {
                guard var member = members[token], update(&member, at: path.dropFirst(), change) else { return false }
                members[token] = member
            }
            value = .object(members)
        case .array(var elements):
            guard let index = token == "-" ? elements.count : index(of: token), index <= elements.count else { return false }
            if isLast {
                let new = change(index < elements.count ? elements[index] : nil)
                elements.replaceSubrange(index..<min(index + 1, elements.count), with: new.map { [$0] } ?? [])
            } else {
                guard index < elements.count, update(&elements[index], at: path.dropFirst(), change) else { return false }
            }
            value = .array(elements)
        default: return false
        }
        return true
    }

    /// RFC 6901 §4: digits without a leading zero.
    static func index(of token: String) -> Int? {
        guard token == "0" || token.utf8.first.map({ (0x31...0x39).contains($0) }) ?? false else { return nil }
        return token.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(token) : nil
    }

    private static func unescaped(_ raw: Substring.UnicodeScalarView) -> String? {
        var token = String.UnicodeScalarView()
        var rest = raw
        while let scalar = rest.popFirst() {
            guard scalar == "~" else {
                token.append(scalar)
                continue
            }
            switch rest.popFirst() {
            case "0": token.append("~")
            case "1": token.append("/")
            default: return nil
            }
        }
        return String(token)
    }
}
