// The filter of `/v1/requests` and `rockpool tail` (docs/reference/admin-api.md#requests).

/// Selects records; every criterion that is set must hold.
package struct ExchangeFilter: Hashable, Sendable {
    /// A status, or a class of statuses such as `5xx`.
    package struct StatusPattern: Hashable, Sendable {
        package let range: ClosedRange<Int>

        /// Nil for a text that is neither.
        package init?(_ text: some StringProtocol) {
            let digits = Array(text.lowercased().utf8)
            guard digits.count == 3, let first = digits.first, (0x30...0x39).contains(first) else { return nil }
            if digits[1] == UInt8(ascii: "x"), digits[2] == UInt8(ascii: "x") {
                let start = Int(first - 0x30) * 100
                range = start...start + 99
            } else {
                guard let status = Int(text) else { return nil }
                range = status...status
            }
        }
    }

    /// Names of upstreams; empty: all.
    package var upstreams: Set<String> = []
    /// Methods in upper case; empty: all.
    package var methods: Set<String> = []
    package var statuses: [StatusPattern] = []
    package var verdicts: Set<String> = []
    /// A text that the URL contains, upper and lower case alike.
    package var text: String?
    /// The earliest time.
    package var since: Timestamp?

    package init() {}

    package func matches(_ record: ExchangeRecord) -> Bool {
        if let since, record.at < since { return false }
        if !upstreams.isEmpty, !upstreams.contains(record.upstream ?? "") { return false }
        if !methods.isEmpty, !methods.contains(record.method) { return false }
        if !statuses.isEmpty, !statuses.contains(where: { $0.range.contains(record.status) }) { return false }
        if !verdicts.isEmpty, !verdicts.contains(record.verdict) { return false }
        if let text, !record.url.lowercased().contains(text.lowercased()) { return false }
        return true
    }
}
