// The report on the certificate authority.
import Foundation
import RockpoolCore
import RockpoolNetwork

/// The authority's properties, without the key itself.
struct CAReport: TabularReport, Encodable {
    struct Store: Codable {
        var kind: String
        var place: String
        var trusted: Bool
    }

    var subject: String
    /// SHA-256 of the certificate.
    var fingerprint: String
    var notBefore: String
    var notAfter: String
    var certificate: String
    var key: String
    var stores: [Store]

    static let missing = CommandFailure(.failed, "there is no certificate authority yet; make it with: rockpool ca init")

    /// Throws `CommandFailure` if there is no authority, `AuthorityProblem` if it cannot be used.
    static func of(_ files: AuthorityFiles, stores: [any TrustStore]) throws -> CAReport {
        guard let authority = try files.load() else { throw missing }
        return CAReport(
            subject: authority.subject, fingerprint: try authority.fingerprint, notBefore: RFC3339.format(authority.notBefore),
            notAfter: RFC3339.format(authority.notAfter), certificate: files.certificatePath, key: files.keyPath,
            stores: stores.map { Store(kind: $0.kind.rawValue, place: $0.place, trusted: $0.holds(files)) })
    }

    var tables: [TextTable] {
        let facts: [(String, TextTable.Cell)] = [
            ("subject", "\(subject)"), ("fingerprint", "\(fingerprint)"), ("valid from", "\(ForPeople.time(notBefore))"),
            ("valid until", "\(ForPeople.time(notAfter))"), ("certificate", "\(certificate)"), ("key", "\(key)"),
        ]
        let rows: [[TextTable.Cell]] = stores.map { store in
            ["\(store.kind)", "\(store.place)", store.trusted ? .init("trusted", .good) : .init("not trusted", .warning)]
        }
        return [.facts(facts), TextTable(columns: [.text("store"), .text("place"), .text("")], rows: rows)]
    }
}
