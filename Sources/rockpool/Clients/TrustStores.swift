// The trust stores of this machine, and how Rockpool's authority is added to and removed from them.
import Foundation
import RockpoolNetwork

/// One trust store.
protocol TrustStore: Sendable {
    /// The kind, as in `--store`: `system`, `nss` or `java`.
    var kind: TrustStoreKind { get }
    /// The path of the store, for display.
    var place: String { get }
    /// True if the store trusts this authority.
    func holds(_ authority: AuthorityFiles) -> Bool
    /// Adds the authority and replaces an earlier one of Rockpool.
    func install(_ authority: AuthorityFiles) throws(CommandFailure)
    /// Removes any authority of Rockpool; does nothing if there is none.
    func remove() throws(CommandFailure)
}

/// The trust stores of this machine.
enum TrustStoreKind: String, CaseIterable { case system, nss, java }

enum TrustStores {
    /// The trust stores of this machine and this user.
    static func found(environment: [String: String] = ProcessInfo.processInfo.environment) -> [any TrustStore] {
        let system: [any TrustStore] = SystemTrust.found.map { [$0] } ?? []
        return system + NSSTrust.found(home: environment["HOME"] ?? NSHomeDirectory()) + JavaTrust.found(environment: environment)
    }
}

/// Debian's store: a directory of local authorities, which a program run by root merges into one file.
struct SystemTrust: TrustStore {
    static let file = "/usr/local/share/ca-certificates/rockpool.crt"
    private static let bundle = "/etc/ssl/certs/ca-certificates.crt"

    let updater: Tool
    var kind: TrustStoreKind { .system }
    var place: String { Self.bundle }

    static var found: SystemTrust? { Tool("update-ca-certificates").map { SystemTrust(updater: $0) } }

    func holds(_ authority: AuthorityFiles) -> Bool {
        guard let own = try? String(contentsOfFile: authority.certificatePath, encoding: .utf8),
            let all = try? String(contentsOfFile: Self.bundle, encoding: .utf8)
        else { return false }
        let body = own.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
        return all.replacing("\n", with: "").contains(body)
    }

    func install(_ authority: AuthorityFiles) throws(CommandFailure) {
        try asRoot(["install", "-D", "-m", "644", authority.certificatePath, Self.file])
        try asRoot([updater.path])
    }

    func remove() throws(CommandFailure) {
        guard access(Self.file, F_OK) == 0 else { return }
        try asRoot(["rm", "-f", Self.file])
        try asRoot([updater.path, "--fresh"])
    }

    private func asRoot(_ command: [String]) throws(CommandFailure) {
        if geteuid() == 0, let tool = Tool("env") { return try tool.perform(command) }
        guard let sudo = Tool("sudo") else {
            throw CommandFailure(.failed, "only root can change \(place): run this again as root, with --config or the same HOME")
        }
        try sudo.perform(command)
    }
}

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

/// The key store of a Java runtime.
struct JavaTrust: TrustStore {
    private static let alias = "rockpool"
    static let password = "changeit"
    let keystore: String
    let keytool: Tool

    var kind: TrustStoreKind { .java }
    var place: String { keystore }

    static func found(environment: [String: String]) -> [JavaTrust] {
        guard let keytool = Tool("keytool"), let keystore = keystore(environment: environment) else { return [] }
        return [JavaTrust(keystore: keystore, keytool: keytool)]
    }

    /// The key store of `JAVA_HOME`, else of the `java` on the path.
    static func keystore(environment: [String: String]) -> String? {
        let java = Tool("java").map { URL(fileURLWithPath: $0.path).resolvingSymlinksInPath().path }
        let home = java.map { URL(fileURLWithPath: $0).deletingLastPathComponent().deletingLastPathComponent().path }
        let homes = [environment["JAVA_HOME"], home].compactMap { $0 }
        guard let found = homes.first(where: { home in access("\(home)/lib/security/cacerts", R_OK) == 0 }) else { return nil }
        return URL(fileURLWithPath: found + "/lib/security/cacerts").resolvingSymlinksInPath().path
    }

    func holds(_ authority: AuthorityFiles) -> Bool {
        let outcome = keytool.run(arguments(["-list", "-rfc", "-alias", Self.alias]))
        guard outcome.status == 0, let own = try? String(contentsOfFile: authority.certificatePath, encoding: .utf8) else { return false }
        let body = own.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
        return outcome.output.filter { !$0.isNewline }.contains(body)
    }

    func install(_ authority: AuthorityFiles) throws(CommandFailure) {
        try remove()
        try keytool.perform(arguments(["-importcert", "-noprompt", "-alias", Self.alias, "-file", authority.certificatePath]))
    }

    func remove() throws(CommandFailure) {
        guard keytool.run(arguments(["-list", "-alias", Self.alias])).status == 0 else { return }
        try keytool.perform(arguments(["-delete", "-alias", Self.alias]))
    }

    private func arguments(_ verb: [String]) -> [String] { verb + ["-keystore", keystore, "-storepass", Self.password] }
}

/// A program found on the path.
struct Tool {
    let path: String

    /// Nil if no program of that name is found.
    init?(_ name: String, environment: [String: String] = ProcessInfo.processInfo.environment) {
        let places = (environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"]
        guard let place = places.first(where: { place in access("\(place)/\(name)", X_OK) == 0 }) else { return nil }
        path = "\(place)/\(name)"
    }

    /// The result of a run.
    struct Outcome {
        var status: Int32
        /// stdout and stderr.
        var output: String
    }

    /// Runs the program to its end without input and returns its output. `environment` is added to the process's own.
    func run(_ arguments: [String], environment: [String: String] = [:], within limit: Double = 60) -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        guard (try? process.run()) != nil else { return Outcome(status: 127, output: "\(path) cannot be started") }
        let timer = DispatchSource.makeTimerSource()
        timer.schedule(deadline: .now() + limit)
        timer.setEventHandler { process.terminate() }
        timer.resume()
        let output = (try? pipe.fileHandleForReading.readToEnd()) ?? nil
        process.waitUntilExit()
        timer.cancel()
        return Outcome(status: process.terminationStatus, output: String(decoding: output ?? Data(), as: UTF8.self))
    }

    /// Runs the program. Throws if it fails.
    func perform(_ arguments: [String]) throws(CommandFailure) {
        let outcome = run(arguments)
        guard outcome.status == 0 else {
            throw CommandFailure(.failed, "\(path) \(arguments.first ?? "") failed: \(outcome.output.inOneLine)")
        }
    }
}
