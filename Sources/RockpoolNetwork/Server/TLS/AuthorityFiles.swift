// The certificate authority's files: `ca.key`, readable by the owner only, and `ca.pem`, readable by all
// (docs/reference/behaviour.md#files, docs/security-model.md#certificate-authority).
import Foundation
import Glibc

/// The certificate authority's files in `<state_dir>/ca`.
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
