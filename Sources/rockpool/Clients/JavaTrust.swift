// The trust store of Java.
import Foundation
import RockpoolNetwork

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
