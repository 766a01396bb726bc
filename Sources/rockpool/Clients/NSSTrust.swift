// The trust store of NSS, which browsers use.
import Foundation
import RockpoolNetwork

/// The NSS databases of Chromium and Firefox.
struct NSSTrust: TrustStore {
    private static let name = "Rockpool CA"
    let directory: String
    let certutil: Tool

    var kind: TrustStoreKind { .nss }
    var place: String { directory }

    static func found(home: String) -> [NSSTrust] {
        guard let certutil = Tool("certutil") else { return [] }
        let profiles = ["\(home)/.mozilla/firefox", "\(home)/snap/firefox/common/.mozilla/firefox"].flatMap { parent in
            ((try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []).sorted().map { "\(parent)/\($0)" }
        }
        let databases = (["\(home)/.pki/nssdb"] + profiles).filter { access($0 + "/cert9.db", F_OK) == 0 }
        return databases.map { NSSTrust(directory: $0, certutil: certutil) }
    }

    /// Makes the database that Chromium reads; nil without certutil.
    static func made(home: String) throws -> NSSTrust? {
        guard let certutil = Tool("certutil") else { return nil }
        let directory = "\(home)/.pki/nssdb"
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try certutil.perform(["-N", "-d", "sql:" + directory, "--empty-password"])
        return NSSTrust(directory: directory, certutil: certutil)
    }

    func holds(_ authority: AuthorityFiles) -> Bool {
        let outcome = certutil.run(["-L", "-d", "sql:" + directory, "-n", Self.name, "-a"])
        guard outcome.status == 0, let own = try? String(contentsOfFile: authority.certificatePath, encoding: .utf8) else { return false }
        return Self.body(of: outcome.output) == Self.body(of: own)
    }

    /// The Base64 lines of a PEM file, joined.
    private static func body(of pem: String) -> String {
        pem.split(whereSeparator: \.isNewline).filter { !$0.hasPrefix("-----") }.joined()
    }

    func install(_ authority: AuthorityFiles) throws(CommandFailure) {
        try remove()
        try certutil.perform(["-A", "-d", "sql:" + directory, "-t", "C,,", "-n", Self.name, "-i", authority.certificatePath])
    }

    func remove() throws(CommandFailure) {
        // The loop removes one certificate at a time, as several may have the name.
        for _ in 0..<16 {
            guard certutil.run(["-L", "-d", "sql:" + directory, "-n", Self.name]).status == 0 else { return }
            try certutil.perform(["-D", "-d", "sql:" + directory, "-n", Self.name])
        }
    }
}
