// The trust files that clients use: the system's authorities and Rockpool's (docs/reference/cli.md#env `rockpool env`).
import Foundation
import RockpoolCore
import RockpoolNetwork

/// The trust files below `<state_dir>/ca`, rewritten when their sources have changed.
///
/// A file's name depends on its source, so that shells with different sources do not overwrite each other's files.
struct TrustFiles {
    let authority: AuthorityFiles
    let environment: [String: String]
    /// Reports omitted parts.
    var warn: (String) -> Void = { Display.error.print("rockpool: warning: \($0.inOneLine)") }

    /// The usual locations of the system's authorities.
    var systemBundles = [
        "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
    ]

    /// Writes the combined bundle, PEM. Without Rockpool's authority it holds the system's only; nil if neither exists.
    func writeBundle() throws -> String? {
        let source = bundleSource
        let own = FileManager.default.contents(atPath: authority.certificatePath)
        if source == nil {
            warn(
                "no list of the system's authorities was found, so clients will use "
                    + (own == nil ? "their own lists" : "Rockpool's authority only")
                    + ": install ca-certificates, or name a list in SSL_CERT_FILE")
            if own == nil { return nil }
        }
        var text = Data("\(Self.mark)\(source?.path ?? "")\n".utf8)
        if let source { text += source.contents }
        if let own { text += Data("\n".utf8) + own }
        let isSystems = source.map { systemBundles.contains($0.path) } ?? true
        return try write(text, to: isSystems ? "bundle.pem" : "bundle-\(Self.fingerprint(of: source?.path ?? "")).pem")
    }

    /// Writes a settings file for wget, as GnuTLS reads no variable for it: the user's own settings and the bundle.
    func writeWget(bundle: String) throws -> String {
        let usual = usualWgetrc
        let own = chosen(by: "WGETRC") ?? usual
        var text = Data("\(Self.mark)\(own)\n".utf8)
        if let contents = FileManager.default.contents(atPath: own) { text += contents }
        text += Data("\nca_certificate = \(bundle)\n".utf8)
        let isUsual = own == usual && bundle.hasSuffix("/bundle.pem")
        return try write(text, to: isUsual ? "wgetrc" : "wgetrc-\(Self.fingerprint(of: own + "\n" + bundle))")
    }

    /// The settings file that wget reads by default.
    var usualWgetrc: String { (environment["HOME"] ?? "") + "/.wgetrc" }

    /// The path of the agent that Node preloads.
    var nodeAgentPath: String { authority.directory + "/node-agent.cjs" }

    /// Writes the agent for Node.
    func writeNodeAgent() throws -> String { try write(Data(NodeAgent.source.utf8), to: "node-agent.cjs") }

    /// The directory of PHP's settings.
    var phpDirectory: String { authority.directory + "/php" }

    /// Writes the settings for PHP, which reads no variable for authorities. Returns their directory.
    func writePHP(bundle: String) throws -> String {
        _ = try write(Data("curl.cainfo = \"\(bundle)\"\nopenssl.cafile = \"\(bundle)\"\n".utf8), to: "php/rockpool.ini")
        return phpDirectory
    }

    /// Writes a settings file for apt, which reads no variable for authorities: the user's own `APT_CONFIG`, the proxy and the bundle.
    func writeApt(proxy: String, bundle: String?) throws -> String {
        let own = chosen(by: "APT_CONFIG")
        var text = Data("\(Self.mark)\(own ?? "")\n".utf8)
        if let own, let contents = FileManager.default.contents(atPath: own) { text += contents + Data("\n".utf8) }
        text += Data("Acquire::http::Proxy \"\(proxy)\";\nAcquire::https::Proxy \"\(proxy)\";\n".utf8)
        if let bundle { text += Data("Acquire::https::CaInfo \"\(try readableByAll(bundle))\";\n".utf8) }
        return try write(text, to: own.map { "apt-\(Self.fingerprint(of: $0)).conf" } ?? "apt.conf")
    }

    /// Returns a copy that every user can read. apt that root runs fetches as the user `_apt`, which cannot enter the state directory; the
    /// bundle holds no secret.
    private func readableByAll(_ bundle: String) throws -> String {
        guard geteuid() == 0, let contents = FileManager.default.contents(atPath: bundle) else { return bundle }
        let directory = "/run/rockpool-trust"
        try? FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        chmod(directory, 0o755)
        let path = "\(directory)/\(Self.fingerprint(of: bundle)).pem"
        if FileManager.default.contents(atPath: path) != contents { try contents.write(to: URL(fileURLWithPath: path), options: .atomic) }
        chmod(path, 0o644)
        return path
    }

    /// Writes Java's key store. Nil if there is no Java or no Rockpool authority, or if `keytool` fails; the failure is only a warning,
    /// because other clients do not need the file.
    func writeJava() -> String? {
        guard let keytool = Tool("keytool"), let system = JavaTrust.keystore(environment: environment),
            access(authority.certificatePath, R_OK) == 0
        else { return nil }
        do {
            return try makeJava(from: system, with: keytool)
        } catch {
            warn("Java is not set up: \((error as? CommandFailure)?.message ?? "\(error)")")
            return nil
        }
    }

    private func makeJava(from system: String, with keytool: Tool) throws -> String {
        let path = authority.directory + "/truststore-\(Self.fingerprint(of: system)).jks"
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

    // MARK: Sources

    /// The user's list of authorities, else the system's.
    private var bundleSource: (path: String, contents: Data)? {
        if let path = chosen(by: "SSL_CERT_FILE") {
            if let contents = FileManager.default.contents(atPath: path) { return (path, contents) }
            warn("SSL_CERT_FILE names \(path), which cannot be read; the system's list is used instead")
        }
        return systemBundles.lazy.compactMap { path in FileManager.default.contents(atPath: path).map { (path, $0) } }.first
    }

    /// The beginning of our files' first line; the path of the source follows.
    private static let mark = "# rockpool, from "

    /// The file that the variable names. In a shell that is already set up, the variable names one of our files, and its first line the
    /// source.
    func chosen(by variable: String) -> String? {
        guard let path = environment[variable], !path.isEmpty else { return nil }
        guard path.hasPrefix(authority.directory + "/") else { return URL(fileURLWithPath: path).path }
        guard let contents = FileManager.default.contents(atPath: path), contents.starts(with: Data(Self.mark.utf8)) else { return nil }
        let source = String(decoding: contents.prefix { $0 != 10 }.dropFirst(Self.mark.utf8.count), as: UTF8.self)
        return source.isEmpty ? nil : source
    }

    /// A number of a path, for distinct file names.
    private static func fingerprint(of text: String) -> String {
        var hash = FNV1a()
        hash.add(text.utf8)
        return String(hash.value, radix: 16)
    }

    private func write(_ text: Data, to name: String) throws -> String {
        let path = authority.directory + "/" + name
        guard FileManager.default.contents(atPath: path) != text else { return path }
        do {
            try FileManager.default.createDirectory(
                atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            try text.write(to: URL(fileURLWithPath: path), options: .atomic)
        } catch {
            throw CommandFailure(.failed, "cannot write \(path); run this as the owner of the state directory, on a disk with free space")
        }
        return path
    }

    private func date(of path: String) -> Date? {
        (try? FileManager.default.attributesOfItem(atPath: path)[.modificationDate]) as? Date
    }
}
