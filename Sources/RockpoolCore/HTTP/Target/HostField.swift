// The Host field: exactly one valid field is required (RFC 9110 §7.2, RFC 9112 §3.2).
package import HTTPTypes

/// Parses the Host field.
package enum HostField {
    /// Returns the host (lower case, without brackets) and the port; throws a 400 for a missing, repeated, empty or invalid field. The
    /// grammar permits an empty value, but no http or https URI has an empty host (RFC 9110 §4.2.1).
    package static func parse(_ fields: HTTPFields) throws(Refusal) -> (host: String, port: Int?) {
        let values = fields[values: .hostField]
        guard let value = values.first else { throw .badRequest("no Host") }
        guard values.count == 1 else { throw .badRequest("more than one Host") }
        let authority: Authority
        do { authority = try Authority.parse(Substring(value).trimmingOWS()) } catch { throw .badRequest("Host: \(error.detail)") }
        return (authority.host, authority.port)
    }
}
