// The results of the checks.
import Foundation

/// The results of all checks.
struct DoctorReport: TabularReport, Encodable {
    var checks: [Finding]
    var failed: Int
    var warned: Int

    init(_ checks: [Finding]) {
        self.checks = checks
        failed = checks.count { $0.result == .fail }
        warned = checks.count { $0.result == .warn }
    }

    var tables: [TextTable] {
        let rows: [[TextTable.Cell]] = checks.map { finding in
            let colour: Colour = finding.result == .ok ? .good : finding.result == .warn ? .warning : .bad
            let words = [finding.detail, finding.advice.map { "→ \($0)" }].compactMap(\.self).joined(separator: "  ")
            return [.init(finding.result.rawValue, colour), "\(finding.check)", "\(words)"]
        }
        return [TextTable(columns: [.text(""), .text(""), .text("")], rows: rows)]
    }
}
