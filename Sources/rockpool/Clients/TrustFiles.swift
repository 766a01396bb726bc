// What clients are pointed at to trust: everything the system trusts, and our authority (contract §6 `rockpool env`).
import Foundation
import RockpoolCore
import RockpoolNetwork

/// The files of trust below `<state_dir>/ca`, made anew when what they are made of has changed.
///
/// A file is named by what it is made from: shells that chose other authorities must not change each other's.
struct TrustFiles {
    let authority: AuthorityFiles
    let environment: [String: String]
    /// Hears what had to be left out.
    var warn: (String) -> Void = { Display.error.print("rockpool: warning: \($0.inOneLine)") }

    /// Where systems keep their authorities.
    var systemBundles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    ]

    /// Writes the combined bundle, PEM. Without an authority of ours it holds the system's; nil when there is neither.
    func writeBundle() throws -> String? {
        let source = bundleSource
        let own = FileManager.default.contents(atPath: authority.certificatePath)
        if source == nil {
            warn(
                "no list of the system's authorities was found, so clients will trust "
                    + (own == nil ? "by their own lists" : "our authority alone")
                    + ": install ca-certificates, or name a list in SSL_CERT_FILE")
            if own == nil { return nil }
        }
        var text = Data("\(Self.mark)\(source?.path ?? "")\n".utf8)
        if let source { text += source.contents }
        if let own { text += Data("\n".utf8) + own }
        let isSystems = source.map { systemBundles.contains($0.path) } ?? true
        return try write(text, to: isSystems ? "bundle.pem" : "bundle-\(Self.fingerprint(source?.path ?? "")).pem")
    }

    /// wget's, whose GnuTLS knows no variable: what the user's own says, and the bundle.
    func writeWget(bundle: String) throws -> String {
        let usual = (environment["HOME"] ?? "") + "/.wgetrc"
        let own = chosen("WGETRC") ?? usual
        var text = Data("\(Self.mark)\(own)\n".utf8)
        if let contents = FileManager.default.contents(atPath: own) { text += contents }
        text += Data("\nca_certificate = \(bundle)\n".utf8)
        let isUsual = own == usual && bundle.hasSuffix("/bundle.pem")
        return try write(text, to: isUsual ? "wgetrc" : "wgetrc-\(Self.fingerprint(own + "\n" + bundle))")
    }

    /// Writes Java's key store. Nil where there is no Java, no authority of ours, or `keytool` fails: that is a warning, for other
    /// clients can do without.
    func writeJava() -> String? {
        guard let keytool = Tool("keytool"), let system = JavaTrust.keystore(environment: environment),
            access(authority.certificatePath, R_OK) == 0
        else { return nil }
        do {
            return try makeJava(from: system, keytool)
        } catch {
            warn("Java is left out: \((error as? CommandFailure)?.message ?? "\(error)")")
            return nil
        }
    }

    private func makeJava(from system: String, _ keytool: Tool) throws -> String {
        let path = authority.directory + "/truststore-\(Self.fingerprint(system)).jks"
        if let made = date(of: path), let one = date(of: system), let other = date(of: authority.certificatePath), made > max(one, other) {
            return path
        }
        let draft = path + ".new-\(UUID().uuidString)"
        defer { unlink(draft) }
        try FileManager.default.copyItem(atPath: system, toPath: draft)
        chmod(draft, 0o600)
        try JavaTrust(keystore: draft, keytool: keytool).install(authority)
        guard rename(draft, path) == 0 else { throw CommandFailure(.failed, "\(path): \(String(cString: strerror(errno)))") }
        return path
    }

    // MARK: sources

    /// The list the user has chosen, else the system's.
    private var bundleSource: (path: String, contents: Data)? {
        if let path = chosen("SSL_CERT_FILE") {
            if let contents = FileManager.default.contents(atPath: path) { return (path, contents) }
            warn("SSL_CERT_FILE names \(path), which cannot be read; the system's list is taken in its place")
        }
        return systemBundles.lazy.compactMap { path in FileManager.default.contents(atPath: path).map { (path, $0) } }.first
    }

    /// What begins the first line of our files; the path they were made from follows.
    private static let mark = "# rockpool, from "

    /// The file that the variable names. In a shell that was set up already it names one of ours, and ours says what it was made from.
    private func chosen(_ variable: String) -> String? {
        guard let path = environment[variable], !path.isEmpty else { return nil }
        guard path.hasPrefix(authority.directory + "/") else { return URL(fileURLWithPath: path).path }
        guard let contents = FileManager.default.contents(atPath: path), contents.starts(with: Data(Self.mark.utf8)) else { return nil }
        let source = String(decoding: contents.prefix { $0 != 10 }.dropFirst(Self.mark.utf8.count), as: UTF8.self)
        return source.isEmpty ? nil : source
    }

    /// FNV-1a of a path, to tell files apart by name; nothing is trusted by it.
    private static func fingerprint(_ text: String) -> String {
        String(text.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }, radix: 16)
    }

    private func write(_ text: Data, to name: String) throws -> String {
        let path = authority.directory + "/" + name
        guard FileManager.default.contents(atPath: path) != text else { return path }
        try FileManager.default.createDirectory(
            atPath: authority.directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        try text.write(to: URL(fileURLWithPath: path), options: .atomic)
        return path
    }

    private func date(of path: String) -> Date? {
        (try? FileManager.default.attributesOfItem(atPath: path)[.modificationDate]) as? Date
    }
}
