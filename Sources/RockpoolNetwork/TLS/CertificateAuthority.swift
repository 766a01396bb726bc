// The local certificate authority: one P-256 key of this machine that signs for the decrypted hosts (RFC 5280;
// docs/security-model.md#certificate-authority).
import Crypto
import Foundation
import Glibc
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

/// The certificate for one host, created locally without contacting the upstream, which may be unreachable (RFC 5280, CA/B BR §7.1.2.7).
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

/// The certificate authority's files in `<state_dir>/ca` (docs/reference/behaviour.md#files, docs/security-model.md#certificate-authority).
///
/// `ca.key` contains the key and the certificate, and is authoritative; `ca.pem` is a copy of the certificate.
package struct AuthorityFiles: Sendable {
    /// `<state_dir>/ca`, mode 0700.
    package let directory: String

    package init(stateDirectory: String) { directory = stateDirectory + "/ca" }

    package var keyPath: String { directory + "/ca.key" }
    package var certificatePath: String { directory + "/ca.pem" }

    /// Throws `AuthorityProblem` when other users than the owner can access the key. Succeeds when there is none.
    package func checkPrivacy() throws(AuthorityProblem) {
        guard let status = FileIdentity.status(of: keyPath), status.st_mode & 0o077 != 0 else { return }
        throw AuthorityProblem("\(keyPath) can be read by others, and so be used to pose as any site; set its mode with chmod 600")
    }

    /// Loads the authority; nil when there is none. Throws `AuthorityProblem`.
    package func load() throws(AuthorityProblem) -> CertificateAuthority? {
        try checkPrivacy()
        guard FileIdentity.status(of: keyPath) != nil else { return nil }
        do {
            let key = try String(contentsOfFile: keyPath, encoding: .utf8)
            let authority = try CertificateAuthority(
                privatePEM: key, certificate: try? String(contentsOfFile: certificatePath, encoding: .utf8))
            try repeatCertificate(of: authority)
            return authority
        } catch {
            throw AuthorityProblem("\(keyPath) cannot be used: \(error)")
        }
    }

    /// Loads the authority, or stores the one that `make` creates. Throws `AuthorityProblem`, and the errors of `make`.
    package func loadOrMake(_ make: () throws -> CertificateAuthority) throws -> (authority: CertificateAuthority, isNew: Bool) {
        if let authority = try load() { return (authority, false) }
        let authority = try make()
        try write(try authority.privatePEM, to: keyPath, mode: 0o600, replaces: false)
        // Another process may have been faster.
        guard let kept = try load() else { throw AuthorityProblem("\(keyPath) is gone again") }
        return (kept, kept.certificate == authority.certificate)
    }

    /// Replaces the stored authority atomically.
    package func replace(with authority: CertificateAuthority) throws {
        try write(try authority.privatePEM, to: keyPath, mode: 0o600, replaces: true)
        try repeatCertificate(of: authority)
    }

    /// The identity of the key file, which changes when it is replaced; nil when there is none.
    var identity: FileIdentity? { FileIdentity(keyPath) }

    private func repeatCertificate(of authority: CertificateAuthority) throws {
        let text = try authority.certificatePEM
        if (try? String(contentsOfFile: certificatePath, encoding: .utf8)) == text { return }
        try write(text, to: certificatePath, mode: 0o644, replaces: true)
    }

    /// Writes a draft, syncs it, then renames it: the file never exists in part.
    private func write(_ text: String, to path: String, mode: mode_t, replaces: Bool) throws {
        try makeDirectory()
        // Unique per process and thread: otherwise one would remove the other's draft.
        let draft = path + ".new-" + String(UInt64.random(in: .min ... .max), radix: 16)
        let descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
        guard descriptor >= 0 else { throw Self.problem("cannot make", at: draft) }
        defer { unsafe unlink(draft) }
        defer { close(descriptor) }
        // One call writes some kilobytes whole, or as far as the disk has room.
        errno = ENOSPC
        guard unsafe Glibc.write(descriptor, text, text.utf8.count) == text.utf8.count else {
            throw Self.problem("cannot write", at: draft)
        }
        guard fchmod(descriptor, mode) == 0, fsync(descriptor) == 0 else { throw Self.problem("cannot write", at: draft) }
        // `link` fails where `rename` would replace.
        let isNamed = unsafe replaces ? rename(draft, path) == 0 : link(draft, path) == 0 || errno == EEXIST
        guard isNamed else { throw Self.problem("cannot make", at: path) }
        let folder = unsafe open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw Self.problem("cannot open", at: directory) }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw Self.problem("cannot write", at: directory) }
    }

    private func makeDirectory() throws {
        // Missing parent directories are also created with mode 0700.
        let parts = directory.split(separator: "/")
        for end in 1...parts.count {
            let path = "/" + parts[..<end].joined(separator: "/")
            guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST || FileIdentity.status(of: path) != nil else {
                throw Self.problem("cannot make", at: path)
            }
        }
    }

    private static func problem(_ what: String, at path: String) -> AuthorityProblem {
        AuthorityProblem(unsafe "\(what) \(path): \(String(cString: strerror(errno)))")
    }
}

/// Distinguishes a file from its replacement.
struct FileIdentity: Hashable, Sendable {
    private let device: dev_t
    private let node: ino_t
    private let seconds: Int
    private let nanoseconds: Int

    /// Nil when there is no such file.
    init?(_ path: String) {
        guard let status = Self.status(of: path) else { return nil }
        (device, node) = (status.st_dev, status.st_ino)
        (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }

    static func status(of path: String) -> stat? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status : nil
    }
}
