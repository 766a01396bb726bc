// The key of `sign` (docs/reference/configuration.md#upstreams).

/// The key with which requests to an upstream are signed anew.
package struct SigV4Rule: Hashable, Sendable {
    package var keyID: String
    /// A file with the secret, mode 0600.
    package var secretFile: String
    package var region: String
    package var service: String

    package init(keyID: String, secretFile: String, region: String = "us-east-1", service: String = "s3") {
        (self.keyID, self.secretFile, self.region, self.service) = (keyID, secretFile, region, service)
    }
}

/// How requests to an upstream are signed anew.
package struct SigningSettings: Hashable, Sendable {
    package var sigV4: SigV4Rule

    package init(sigV4: SigV4Rule) { self.sigV4 = sigV4 }
}
