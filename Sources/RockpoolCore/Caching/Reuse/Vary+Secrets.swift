// Variants by a credential: selected by the name of its value, so that the value itself is stored nowhere (RFC 9111 §4.1, §7.3).
package import HTTPTypes

extension Vary {
    /// True when one of the responses was selected by a field that carries a secret.
    package static func isBySecret(_ candidates: [StoredResponse]) -> Bool {
        candidates.contains { $0.requestFields.contains { SecretFields.contains($0.name) } }
    }

    /// The fields with the value of each secret one replaced; without a `Cookie` that identifies no user.
    /// - Parameter name: gives the name of a value: the same for the same value, and nothing that the value can be had from.
    package static func veiled(_ fields: HTTPFields, by name: (String) -> String) -> HTTPFields {
        HTTPFields(
            fields.compactMap { field in
                guard SecretFields.contains(field.name) else { return field }
                return selectingValue(field.value, of: field.name).map { HTTPField(name: field.name, value: name($0)) }
            })
    }

    /// A response of the client's own partition as if it had been requested with the credential of `request`: the partition already
    /// decides that it is this client's, whether its token was renewed or, with `identity: cookie:NAME`, another cookie has changed.
    /// - Parameter isByAuthorization: true if `Authorization` alone names the partition: cookies may be those of another user.
    package static func forOwner(_ stored: StoredResponse, request: RequestHead, isByAuthorization: Bool) -> StoredResponse {
        guard let names = stored.validity.varyNames else { return stored }
        var own = stored
        for name in names where isByAuthorization ? name == .authorization : SecretFields.identifies(name) {
            own.requestFields[name] = request.fields[name]
        }
        return own
    }
}
