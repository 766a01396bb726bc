// A complete request as the notes API reads it.
package import HTTPTypes
import RockpoolCore

/// A request with its body; the target is in origin-form, as a server receives it (RFC 9112 §3.2.1).
package struct NotesRequest: Hashable, Sendable {
    /// Case-sensitive, as sent.
    package var method: HTTPRequest.Method
    /// Path and query.
    package var target: String
    /// Every field, in order.
    package var fields: HTTPFields
    /// The content, without transfer coding.
    package var body: [UInt8]

    package init(method: HTTPRequest.Method, target: String, fields: HTTPFields = [:], body: [UInt8] = []) {
        self.method = method
        self.target = target
        self.fields = fields
        self.body = body
    }

    /// The path without its query.
    package var path: Substring { target.prefix { $0 != "?" } }

    /// The first value of a query parameter, percent-decoded.
    package func query(named name: String) -> String? {
        for pair in target.dropFirst(path.count + 1).split(separator: "&") {
            let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if halves.first.map(Self.decoded) == name { return halves.count > 1 ? Self.decoded(halves[1]) : "" }
        }
        return nil
    }

    /// The request's idempotency key, from a quoted or raw value.
    package var idempotencyKey: String? { fields.value(of: "Idempotency-Key").flatMap { IdempotencyKey.parse($0) } }

    /// The token of `Authorization: Bearer`.
    var bearer: String? {
        guard let value = fields[.authorization], value.lowercased().hasPrefix("bearer ") else { return nil }
        return String(value.dropFirst(7))
    }

    private static func decoded(_ text: Substring) -> String {
        var out: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16), rest.count >= 2 {
                out.append(code)
                rest = rest.dropFirst(2)
            } else {
                out.append(byte == UInt8(ascii: "+") ? 0x20 : byte)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}

extension HTTPFields {
    /// The value of a field for which HTTPTypes has no constant.
    func value(of name: String) -> String? { HTTPField.Name(name).flatMap { self[$0] } }

    mutating func set(_ value: String, for name: String) {
        if let name = HTTPField.Name(name) { self[name] = value }
    }
}
