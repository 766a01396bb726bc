// The local certificate authority: one P-256 key of this machine that signs for the decrypted hosts (RFC 5280;
// docs/security-model.md#certificate-authority).
import Crypto
import Foundation
package import RockpoolCore
import SwiftASN1
import X509

/// A certificate authority with its key.
package struct CertificateAuthority: Sendable {
    /// Ten years, because a replacement must be installed on every client.
    static let life = TimeSpan.days(3650)
    /// The backdating of certificates, for clients with clocks that are behind.
    static let backdating = TimeSpan.days(1)

    let certificate: Certificate
    let key: Certificate.PrivateKey

    /// Creates a new authority, valid from one day ago.
    ///
    /// - Parameters:
    ///   - host: this machine's name, which identifies the authority in a client's list.
    ///   - domains: unless empty, the only domains it can sign for, even if its key is stolen (RFC 5280 §4.2.1.10).
    package static func make(host: String, constrainedTo domains: [String] = [], now: Timestamp) throws -> CertificateAuthority {
        let key = Certificate.PrivateKey(P256.Signing.PrivateKey())
        // X.520 limits a common name to 64 characters.
        let name = try DistinguishedName { CommonName("Rockpool CA (\(host.prefix(40))) \(RFC3339.format(now).prefix(10))") }
        var extensions: [Certificate.Extension] = [
            try .init(BasicConstraints.isCertificateAuthority(maxPathLength: 0), critical: true),
            try .init(KeyUsage(keyCertSign: true, cRLSign: true), critical: true),
            try .init(SubjectKeyIdentifier(hash: key.publicKey), critical: false),
        ]
        if !domains.isEmpty {
            // All addresses are excluded: a constraint on names alone would permit every address.
            let constraints = NameConstraints(
                permittedDNSDomains: domains,
                excludedIPRanges: [
                    .init(contentBytes: ArraySlice(repeating: 0, count: 8)), .init(contentBytes: ArraySlice(repeating: 0, count: 32)),
                ])
            extensions.append(try .init(constraints, critical: true))
        }
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: key.publicKey, notValidBefore: (now - backdating).date,
            notValidAfter: (now + life).date, issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions(extensions), issuerPrivateKey: key)
        return CertificateAuthority(certificate: certificate, key: key)
    }

    private init(certificate: Certificate, key: Certificate.PrivateKey) {
        self.certificate = certificate
        self.key = key
    }

    /// Parses the format of `privatePEM`; `certificate` is used if the text has none, as with an imported key.
    ///
    /// - Throws: `AuthorityProblem` when one of the two is missing or unreadable, they do not belong together, the key is not one of P-256,
    ///   or the certificate is not one of an authority.
    package init(privatePEM: String, certificate other: String?) throws {
        let documents = try Self.documents(in: privatePEM, named: "the key")
        guard let keyDocument = documents.first(where: { $0.discriminator.hasSuffix("PRIVATE KEY") }) else {
            throw AuthorityProblem("it holds no private key")
        }
        let beside = try other.map { try Self.documents(in: $0, named: "the certificate") } ?? []
        guard let certificateDocument = (documents + beside).first(where: { $0.discriminator == "CERTIFICATE" }) else {
            throw AuthorityProblem("there is no certificate for it")
        }
        // Leaves are signed by this curve with SHA-256; another kind of key would produce certificates that clients cannot verify.
        guard let signing = try? P256.Signing.PrivateKey(pemRepresentation: keyDocument.pemString) else {
            throw AuthorityProblem("its key is not one of P-256")
        }
        key = Certificate.PrivateKey(signing)
        guard let read = try? Certificate(pemDocument: certificateDocument) else {
            throw AuthorityProblem("its certificate cannot be read")
        }
        certificate = read
        guard certificate.publicKey == key.publicKey else { throw AuthorityProblem("the certificate is not that of the key") }
        guard (try? Self.isAuthority(certificate)) == true else { throw AuthorityProblem("its certificate is not that of an authority") }
    }

    private static func documents(in pem: String, named name: String) throws -> [PEMDocument] {
        do { return try PEMDocument.parseMultiple(pemString: pem) } catch { throw AuthorityProblem("\(name) is not PEM") }
    }

    /// RFC 5280 §4.2.1.9: a certificate without the basic constraint may not sign; §4.2.1.3: one without a key usage may.
    private static func isAuthority(_ certificate: Certificate) throws -> Bool {
        guard case .isCertificateAuthority = try certificate.extensions.basicConstraints else { return false }
        return try certificate.extensions.keyUsage?.keyCertSign ?? true
    }

    /// The only domains it can sign for; empty when it can for any.
    package var domains: [String] { (try? certificate.extensions.nameConstraints).map { Array($0.permittedDNSDomains) } ?? [] }

    /// The key in PKCS #8, followed by the certificate: one file, so that the two can only be replaced together.
    package var privatePEM: String {
        get throws { try key.serializeAsPEM().pemString + "\n" + certificatePEM }
    }

    /// The certificate that clients install.
    package var certificatePEM: String {
        get throws { try certificate.serializeAsPEM().pemString + "\n" }
    }

    /// The certificate in DER.
    package var certificateDER: [UInt8] {
        get throws {
            var serializer = DER.Serializer()
            try serializer.serialize(certificate)
            return serializer.serializedBytes
        }
    }

    /// The subject, `CN=Rockpool CA (host) 2026-11-21`.
    package var subject: String { certificate.subject.description }
    package var notBefore: Timestamp { Timestamp(certificate.notValidBefore) }
    package var notAfter: Timestamp { Timestamp(certificate.notValidAfter) }

    /// SHA-256 of the certificate in the usual format: `AB:CD:…`.
    package var fingerprint: String {
        get throws { SHA256.hash(data: try certificateDER).map { Self.hex($0) }.joined(separator: ":") }
    }

    private static func hex(_ byte: UInt8) -> String { (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true) }
}

/// The description of a problem with the certificate authority's files.
package struct AuthorityProblem: Error, Hashable, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}

extension Timestamp {
    init(_ date: Date) { self.init(seconds: Int64(date.timeIntervalSince1970)) }

    var date: Date { Date(timeIntervalSince1970: Double(seconds)) }
}
