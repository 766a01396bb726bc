// The answer of a parent proxy in the middle of a handshake (RFC 4559 §5; [MS-NTHT] §3.1).
package import HTTPTypes

/// `Proxy-Authenticate` of Negotiate and NTLM.
package enum ProxyChallenge {
    /// True if the fields hold a message for the next step, in contrast to the bare name of a scheme.
    package static func continues(_ fields: HTTPFields) -> Bool {
        fields[values: .proxyAuthenticate].contains { value in
            let parts = value.split(separator: " ")
            return parts.count == 2 && ["ntlm", "negotiate"].contains(parts[0].lowercased()) && Base64.decode(String(parts[1])) != nil
        }
    }
}
