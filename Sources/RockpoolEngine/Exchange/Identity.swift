// Whose request it is: its partition of the cache, its principal, and what of it is secret (docs/caching.md#partitions *Identity*).
package import HTTPTypes
import RockpoolCore

/// Whose request it is, and what of it is secret.
package struct Identity: Hashable, Sendable {
    /// The partition of the cache: nil without credentials, empty where the upstream's rule switches partitions off.
    package var partition: String?
    /// Whose operations these are, and whose credential sends them; nil when the request carries no secret.
    package var principal: String?
    /// The name of this very credential: what a proof is kept under. Nil where the upstream's rule names the identity by something else.
    package var credential: String?
    /// The fields that carry secrets: taken out of what is stored, put back when an operation is sent.
    package var secrets: HTTPFields

    package init(partition: String? = nil, principal: String? = nil, credential: String? = nil, secrets: HTTPFields = [:]) {
        self.partition = partition
        self.principal = principal
        self.credential = credential
        self.secrets = secrets
    }

    /// One that the upstream's rule names.
    init(_ name: String, _ secrets: HTTPFields) { self.init(partition: name, principal: name, secrets: secrets) }

    /// `fields` without the secrets: what may be written to disk.
    package func withoutSecrets(_ fields: HTTPFields) -> HTTPFields {
        HTTPFields(fields.filter { !secrets.contains($0.name) && !SecretFields.contains($0.name) })
    }

    /// The same of another principal, who has been found out to be meant.
    func folded(into principal: String) -> Identity {
        var identity = self
        if identity.partition == self.principal { identity.partition = principal }
        identity.principal = principal
        return identity
    }
}

extension HTTPFields {
    init(_ fields: some Sequence<HTTPField>) {
        self.init()
        for field in fields { append(field) }
    }

    /// Whether every one of `secrets` is among these.
    func carry(_ secrets: HTTPFields) -> Bool { secrets.allSatisfy { self[values: $0.name].contains($0.value) } }

    /// The value of one cookie of the request.
    func cookie(_ name: String) -> String? {
        for pair in self[values: .cookie].flatMap({ $0.split(separator: ";") }) {
            let trimmed = pair.drop { $0 == " " }
            if trimmed.hasPrefix("\(name)=") { return String(trimmed.dropFirst(name.count + 1)) }
        }
        return nil
    }
}
