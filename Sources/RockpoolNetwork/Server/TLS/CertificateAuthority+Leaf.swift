// The certificate for one host, created locally without contacting the upstream, which may be unreachable (RFC 5280, CA/B BR §7.1.2.7).
import Crypto
import RockpoolCore
import SwiftASN1
import X509

extension CertificateAuthority {
    /// The validity of a leaf: short, because there is no revocation.
    static let leafLife = TimeSpan.days(7)

    /// Returns a certificate for `host`, a DNS name or an IP address, valid from one day ago for seven days in all.
    ///
    /// - Returns: the DER bytes.
    func leaf(for host: String, key: P256.Signing.PublicKey, now: Timestamp) throws -> [UInt8] {
        let publicKey = Certificate.PublicKey(key)
        let name: GeneralName = IPAddress(host).map { .ipAddress(ASN1OctetString(contentBytes: $0.octets[...])) } ?? .dnsName(host)
        // A longer name does not fit; clients use the alternative name anyway, which then must be critical.
        let hasSubject = host.utf8.count <= 64
        let subject = hasSubject ? try DistinguishedName { CommonName(host) } : DistinguishedName()
        let extensions: [Certificate.Extension] = [
            try .init(BasicConstraints.notCertificateAuthority, critical: true),
            try .init(KeyUsage(digitalSignature: true), critical: true),
            try .init(ExtendedKeyUsage([.serverAuth]), critical: false),
            try .init(SubjectAlternativeNames([name]), critical: !hasSubject),
            try .init(SubjectKeyIdentifier(hash: publicKey), critical: false),
            try .init(AuthorityKeyIdentifier(keyIdentifier: try keyIdentifier), critical: false),
        ]
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: publicKey, notValidBefore: (now - Self.backdating).date,
            notValidAfter: min(now - Self.backdating + Self.leafLife, notAfter).date, issuer: self.certificate.subject, subject: subject,
            signatureAlgorithm: .ecdsaWithSHA256, extensions: Certificate.Extensions(extensions), issuerPrivateKey: self.key)
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return serializer.serializedBytes
    }

    /// The authority's key identifier as in its certificate, also for an imported authority.
    private var keyIdentifier: ArraySlice<UInt8> {
        get throws {
            try certificate.extensions.subjectKeyIdentifier?.keyIdentifier
                ?? SubjectKeyIdentifier(hash: certificate.publicKey).keyIdentifier
        }
    }
}
