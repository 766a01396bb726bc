// Who a request is from, and the newest live credential of each: in memory only, never stored (outbox.md §1.10, design §5).
package import HTTPTypes
package import RockpoolCore
package import RockpoolStore
import Synchronization

/// Whose request it is.
package struct Identity: Hashable, Sendable {
    /// The partition of the cache: nil without credentials, empty where the upstream's rule switches partitions off.
    package var partition: String?
    /// Whose operations these are, and whose credential sends them; nil without credentials.
    package var principal: String?
}

/// Tells identities apart and remembers their credentials while the server runs.
package final class Credentials: Sendable {
    /// Fields that carry secrets: they are taken out of what is stored and put back when an operation is sent.
    package static let fieldNames: [HTTPField.Name] = ["Authorization", "Cookie", "X-Api-Key", "Api-Key", "X-Auth-Token"]
        .compactMap { HTTPField.Name($0) }
    private static let limit = 1000

    private let store: DataStore
    private let live = Mutex<[String: HTTPFields]>([:])

    package init(store: DataStore) { self.store = store }

    /// Who `request` is from, by the upstream's rule (design §5 *Identity*).
    package func identity(of request: RequestHead, rule: IdentityRule) -> Identity {
        switch rule {
        case .single: return Identity(partition: "", principal: named("single", request, ""))
        case .header(let name): return identity("header", request, HTTPField.Name(name).flatMap { request.fields[$0] })
        case .cookie(let name): return identity("cookie", request, request.fields.cookie(name))
        case .auto:
            // A bearer token says who it is by itself; cookies beside it must not split the identity.
            if let authorization = request.fields[.authorization] { return identity("authorization", request, authorization) }
            let secrets = Self.fieldNames.compactMap { name in request.fields[name].map { "\(name.canonicalName): \($0)" } }
            return identity("fields", request, secrets.isEmpty ? nil : secrets.joined(separator: "\n"))
        }
    }

    private func identity(_ kind: String, _ request: RequestHead, _ secret: String?) -> Identity {
        let name = secret.map { named(kind, request, $0) }
        return Identity(partition: name, principal: name)
    }

    private func named(_ kind: String, _ request: RequestHead, _ secret: String) -> String {
        store.identityName("\(kind)|\(request.origin.url)|\(secret)".utf8)
    }

    /// The credential-bearing fields of `fields`.
    package static func of(_ fields: HTTPFields) -> HTTPFields { HTTPFields(fields.filter { fieldNames.contains($0.name) }) }

    /// `fields` without secrets: what may be written to disk.
    package static func removed(from fields: HTTPFields) -> HTTPFields { HTTPFields(fields.filter { !fieldNames.contains($0.name) }) }

    /// Remembers what `identity` has just shown. One the upstream has accepted replaces an earlier one; an untried one does not.
    ///
    /// - Returns: whether the identity has a live credential now that it did not have before.
    @discardableResult
    package func remember(_ fields: HTTPFields, of identity: String, isProved: Bool) -> Bool {
        let secrets = Self.of(fields)
        guard !secrets.isEmpty else { return false }
        return live.withLock {
            let known = $0[identity]
            if known != nil, !isProved { return false }
            if known == nil, $0.count >= Self.limit { $0.removeValue(forKey: $0.keys.first ?? "") }
            $0[identity] = secrets
            return known != secrets
        }
    }

    /// The live credential of `identity`, if it has shown one since the start.
    package func live(of identity: String) -> HTTPFields? { live.withLock { $0[identity] } }

    /// The upstream refused it: it is not used again until the identity shows another.
    package func forget(_ identity: String) { live.withLock { _ = $0.removeValue(forKey: identity) } }
}

extension HTTPFields {
    init(_ fields: some Sequence<HTTPField>) {
        self.init()
        for field in fields { append(field) }
    }

    /// The value of one cookie of the request.
    fileprivate func cookie(_ name: String) -> String? {
        for pair in self[values: .cookie].flatMap({ $0.split(separator: ";") }) {
            let trimmed = pair.drop { $0 == " " }
            if trimmed.hasPrefix("\(name)=") { return String(trimmed.dropFirst(name.count + 1)) }
        }
        return nil
    }
}
