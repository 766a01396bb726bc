// `1.5 GB`, `500ms`: a decimal number and a unit, scaled without floating point, so that the value is exact.

/// A number in text and the unit that follows it.
struct Quantity {
    private let whole: Int64
    private let fraction: Substring
    /// The unit as written, without the space before it; empty if there is none.
    let unit: Substring
    private let text: String

    init(_ text: String) throws(UnitError) {
        let trimmed = Substring(text).trimmingOWS()
        guard !trimmed.isEmpty else { throw .empty }
        let digits = trimmed.prefix { $0.isASCII && $0.isNumber }
        guard digits.isDigits else { throw .noNumber(text) }
        guard let whole = Int64(digits) else { throw .tooLarge(text) }
        var rest = trimmed[digits.endIndex...]
        var fraction = Substring()
        if rest.first == "." {
            fraction = rest.dropFirst().prefix { $0.isASCII && $0.isNumber }
            guard fraction.isDigits, fraction.utf8.count <= 9 else { throw .noNumber(text) }
            rest = rest[fraction.endIndex...]
        }
        self.whole = whole
        self.fraction = fraction
        self.text = text
        unit = rest.trimmingOWS()
    }

    var isZero: Bool { whole == 0 && fraction.allSatisfy { $0 == "0" } }

    /// The number times `size`, rounded down.
    func scaled(by size: Int64) throws(UnitError) -> Int64 {
        let (product, overflow) = whole.multipliedReportingOverflow(by: size)
        guard !overflow else { throw .tooLarge(text) }
        let places = fraction.utf8.reduce(Int64(1)) { power, _ in power * 10 }
        let part = (Int64(fraction) ?? 0).multipliedFullWidth(by: size)
        let (sum, sumOverflow) = product.addingReportingOverflow(places.dividingFullWidth(part).quotient)
        guard !sumOverflow else { throw .tooLarge(text) }
        return sum
    }
}
