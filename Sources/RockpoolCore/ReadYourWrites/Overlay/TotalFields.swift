// Fields of a list that count its items (docs/outbox.md#reads).
package import HTTPTypes

extension HTTPFields {
    private static let totals = ["X-Total-Count", "X-Total", "Total-Count", "X-Pagination-Total-Count"].compactMap { HTTPField.Name($0) }

    /// Adjusts the fields that count the items of a list by those that were added or removed.
    package mutating func countItems(_ growth: Int) {
        guard growth != 0 else { return }
        for name in Self.totals {
            guard let text = self[name], let value = Int(text), case let (sum, overflow) = value.addingReportingOverflow(growth), !overflow,
                sum >= 0
            else { continue }
            self[name] = String(sum)
        }
    }
}
