// The trust stores of this machine.
import Foundation

enum TrustStoreKind: String, CaseIterable { case system, nss, java }

enum TrustStores {
    /// The trust stores of this machine and this user.
    static func found(environment: [String: String] = ProcessInfo.processInfo.environment) -> [any TrustStore] {
        let system: [any TrustStore] = SystemTrust.found.map { [$0] } ?? []
        return system + NSSTrust.found(home: environment["HOME"] ?? NSHomeDirectory()) + JavaTrust.found(environment: environment)
    }
}
