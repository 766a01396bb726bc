// The TLS settings of an upstream (docs/reference/configuration.md).

/// Verification of the upstream's certificate, which cannot be disabled.
package struct TLSSettings: Hashable, Sendable {
    package var caFile: String?
    package var minVersion: String
    package var clientCert: String?
    package var clientKey: String?

    package init(caFile: String? = nil, minVersion: String = "1.2", clientCert: String? = nil, clientKey: String? = nil) {
        self.caFile = caFile
        self.minVersion = minVersion
        self.clientCert = clientCert
        self.clientKey = clientKey
    }
}
