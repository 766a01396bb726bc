// The results of the checks.
import Foundation

/// The result of one check.
struct Finding: Codable, Hashable, Sendable {
    enum Result: String, Codable { case ok, warn, fail }

    var check: String
    var result: Result
    var detail: String
    /// The advice for the user; nil if none is needed.
    var advice: String?

    static func ok(_ check: String, _ detail: String) -> Finding { Finding(check: check, result: .ok, detail: detail) }

    static func warn(_ check: String, _ detail: String, _ advice: String) -> Finding {
        Finding(check: check, result: .warn, detail: detail, advice: advice)
    }

    static func fail(_ check: String, _ detail: String, _ advice: String) -> Finding {
        Finding(check: check, result: .fail, detail: detail, advice: advice)
    }
}

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
