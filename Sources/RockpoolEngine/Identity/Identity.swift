// The identity of a request: its cache partition, its principal and its secret fields (docs/caching.md#partitions *Identity*).
package import HTTPTypes
import RockpoolCore

/// The identity of a request, with its secret fields.
package struct Identity: Hashable, Sendable {
    /// The cache partition: nil without credentials, empty if the upstream's rule disables partitions.
    package var partition: String?
    /// The owner of the request's operations, and of the credential that sends them; nil if the request carries no secret.
    package var principal: String?
    /// The name of the credential in the request; a proved one belongs to a principal of another name. Nil if the request carries no secret.
    package var credential: String?
    /// The secret fields: removed before storing, and added again when an operation is sent.
    package var secrets: HTTPFields
    /// True if `Authorization` alone names it: several users may be behind one, told apart by their cookies, as on a site with a password for
    /// all of it.
    package var isByAuthorization = false
    /// True if the upstream's rule names it by one field or cookie: its requests may differ in their other cookies.
    package private(set) var isByRule = false
    /// Names of the fields with a signature of this request alone, which stay with it and serve no other.
    package var signature: Set<HTTPField.Name> = []
    /// True if the credential has been renewed and names the identity for this moment only: nothing may be kept ready for it.
    var isFormer = false
    /// The number of sessions that had left their former credentials behind when the request came (`Sessions`).
    var arrival: UInt64 = 0

    package init(partition: String? = nil, principal: String? = nil, credential: String? = nil, secrets: HTTPFields = [:]) {
        self.partition = partition
        self.principal = principal
        self.credential = credential
        self.secrets = secrets
    }

    /// An identity named by the upstream's rule.
    init(byRule credential: String, _ principal: String, _ secrets: HTTPFields) {
        self.init(partition: principal, principal: principal, credential: credential, secrets: secrets)
        isByRule = true
    }

    /// The secret fields that send operations: those that name it, or all if no field alone does.
    var sending: HTTPFields { isByAuthorization ? HTTPFields(secrets.filter { $0.name == .authorization }) : secrets }

    /// The secret fields of this request alone, with which a write of it is sent. Cookies are among them wherever they are: those of a later
    /// request may be another user's, who has signed in under the same session.
    var beside: HTTPFields {
        if isByAuthorization { return HTTPFields(secrets.filter { $0.name != .authorization }) }
        return HTTPFields(secrets.filter { $0.name == .cookie })
    }

    /// Returns `fields` without secrets, as they may be written to disk.
    package func withoutSecrets(_ fields: HTTPFields) -> HTTPFields {
        HTTPFields(fields.filter { signature.contains($0.name) || !secrets.contains($0.name) && !SecretFields.contains($0.name) })
    }

    /// Returns this identity with another principal, to which its credential was found to belong.
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

    /// True if these fields contain all of `secrets`.
    func carry(_ secrets: HTTPFields) -> Bool { secrets.allSatisfy { self[values: $0.name].contains($0.value) } }

    /// Returns the value of one cookie of the request.
    func cookie(_ name: String) -> String? {
        for pair in self[values: .cookie].flatMap({ $0.split(separator: ";") }) {
            let trimmed = pair.drop { $0 == " " }
            if trimmed.hasPrefix("\(name)=") { return String(trimmed.dropFirst(name.count + 1)) }
        }
        return nil
    }
}

extension IdentityRule {
    /// The field that names clients; nil for other rules.
    var fieldName: HTTPField.Name? {
        if case .header(let name) = self { HTTPField.Name(name) } else { nil }
    }
}
