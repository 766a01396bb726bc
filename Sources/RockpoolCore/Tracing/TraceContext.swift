// The trace that a request belongs to (W3C Trace Context, https://www.w3.org/TR/trace-context/).

/// The value of `traceparent`.
package struct TraceContext: Hashable, Sendable {
    /// 32 lower-case hexadecimal digits, not all 0.
    package let traceID: String
    /// 16 lower-case hexadecimal digits, not all 0: the span that the request was sent by.
    package let spanID: String
    /// True if the trace is recorded.
    package let isSampled: Bool

    /// A context within the same trace, or a new one.
    package init(traceID: String, spanID: String, isSampled: Bool) {
        (self.traceID, self.spanID, self.isSampled) = (traceID, spanID, isSampled)
    }

    /// Parses a field value; nil for one that is malformed, which then counts as absent. Later versions may append fields.
    package init?(_ value: String) {
        let parts = value.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, Self.isHex(parts[0], count: 2), parts[0] != "ff", parts[0] != "00" || parts.count == 4,
            Self.isHex(parts[1], count: 32), Self.isHex(parts[2], count: 16), Self.isHex(parts[3], count: 2),
            parts[1].contains(where: { $0 != "0" }), parts[2].contains(where: { $0 != "0" }), let flags = UInt8(parts[3], radix: 16)
        else { return nil }
        (traceID, spanID, isSampled) = (String(parts[1]), String(parts[2]), flags & 1 == 1)
    }

    package var fieldValue: String { "00-\(traceID)-\(spanID)-\(isSampled ? "01" : "00")" }

    private static func isHex(_ text: Substring, count: Int) -> Bool {
        text.utf8.count == count && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    /// Returns 16 digits that are not all 0.
    package static func digits(of number: UInt64) -> String {
        let text = String(max(1, number), radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }
}
