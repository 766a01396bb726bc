// What clients are pointed at to trust: everything the system trusts, and our authority (contract §6 `rockpool env`).
import Foundation
import RockpoolCore
import RockpoolNetwork

/// The files of trust below `<state_dir>/ca`, made anew when what they are made of has changed.
struct TrustFiles {
    let authority: AuthorityFiles
    let environment: [String: String]

    /// The system's authorities and ours, PEM.
    var bundlePath: String { authority.directory + "/bundle.pem" }
    /// The same for Java.
    var javaPath: String { authority.directory + "/truststore.jks" }

    /// Where systems keep their authorities.
    private static let systemBundles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    ]

    /// Writes the combined bundle. Without an authority of ours it holds the system's.
    func writeBundle() throws -> String {
        // A file the user has chosen counts, unless it is this one, in a shell that was set up already.
        let chosen = environment["SSL_CERT_FILE"].flatMap { $0 == bundlePath ? nil : $0 }
        let system = ([chosen].compactMap { $0 } + Self.systemBundles).lazy.compactMap { FileManager.default.contents(atPath: $0) }.first
        var text = system ?? Data()
        if let own = FileManager.default.contents(atPath: authority.certificatePath) { text += Data("\n".utf8) + own }
        guard FileManager.default.contents(atPath: bundlePath) != text else { return bundlePath }
        try FileManager.default.createDirectory(
            atPath: authority.directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try text.write(to: URL(fileURLWithPath: bundlePath), options: .atomic)
        return bundlePath
    }

    /// wget's, whose GnuTLS knows no variable: what the user's own says, and the bundle.
    func writeWget() throws -> String {
        let path = authority.directory + "/wgetrc"
        let own = environment["WGETRC"].flatMap { $0 == path ? nil : $0 } ?? (environment["HOME"] ?? "") + "/.wgetrc"
        let text = ((try? String(contentsOfFile: own, encoding: .utf8)) ?? "") + "\nca_certificate = \(bundlePath)\n"
        if (try? String(contentsOfFile: path, encoding: .utf8)) != text {
            try text.write(toFile: path, atomically: true, encoding: .utf8)
        }
        return path
    }

    /// Writes Java's. Nil where there is no Java, or no authority of ours.
    func writeJava() throws -> String? {
        guard let keytool = Tool("keytool"), let system = JavaTrust.keystore(environment: environment),
            access(authority.certificatePath, R_OK) == 0
        else { return nil }
        if let made = date(of: javaPath), let one = date(of: system), let other = date(of: authority.certificatePath),
            made > max(one, other)
        {
            return javaPath
        }
        let draft = javaPath + ".new-\(getpid())"
        defer { unlink(draft) }
        try FileManager.default.copyItem(atPath: system, toPath: draft)
        chmod(draft, 0o600)
        try JavaTrust(keystore: draft, keytool: keytool).install(authority)
        guard rename(draft, javaPath) == 0 else { throw CommandFailure(.failed, "\(javaPath): \(String(cString: strerror(errno)))") }
        return javaPath
    }

    private func date(of path: String) -> Date? {
        (try? FileManager.default.attributesOfItem(atPath: path)[.modificationDate]) as? Date
    }
}
