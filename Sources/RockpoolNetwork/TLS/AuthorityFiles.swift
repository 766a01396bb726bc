// Where the certificate authority is kept: `ca.key` for nobody else's eyes, `ca.pem` for everybody (contract §5, security.md §4).
import Foundation
import Glibc

/// The certificate authority's files in `<state_dir>/ca`.
///
/// `ca.key` holds the key and the certificate, and is the one that counts; `ca.pem` repeats the certificate.
package struct AuthorityFiles: Sendable {
    /// `<state_dir>/ca`, mode 0700.
    package let directory: String

    package init(stateDirectory: String) { directory = stateDirectory + "/ca" }

    package var keyPath: String { directory + "/ca.key" }
    package var certificatePath: String { directory + "/ca.pem" }

    /// Throws `AuthorityProblem` when others than the owner can read the key. All is well when there is none.
    package func checkPrivacy() throws(AuthorityProblem) {
        guard let status = FileIdentity.status(of: keyPath), status.st_mode & 0o077 != 0 else { return }
        throw AuthorityProblem("\(keyPath) can be read by others, and so be used to pose as any site; set its mode with chmod 600")
    }

    /// The authority there is; nil when there is none. Throws `AuthorityProblem`.
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

    /// The authority there is, or the one that `make` makes. Throws `AuthorityProblem`, and what `make` throws.
    package func loadOrMake(_ make: () throws -> CertificateAuthority) throws -> (authority: CertificateAuthority, isNew: Bool) {
        if let authority = try load() { return (authority, false) }
        let authority = try make()
        try write(try authority.privatePEM, to: keyPath, mode: 0o600, replaces: false)
        // Another process may have been first.
        guard let kept = try load() else { throw AuthorityProblem("\(keyPath) is gone again") }
        return (kept, kept.certificate == authority.certificate)
    }

    /// Puts another authority in the place of what there is, all at once.
    package func replace(with authority: CertificateAuthority) throws {
        try write(try authority.privatePEM, to: keyPath, mode: 0o600, replaces: true)
        try repeatCertificate(of: authority)
    }

    /// What tells this authority's file from the next one's; nil when there is none.
    var identity: FileIdentity? { FileIdentity(keyPath) }

    private func repeatCertificate(of authority: CertificateAuthority) throws {
        let text = try authority.certificatePEM
        if (try? String(contentsOfFile: certificatePath, encoding: .utf8)) == text { return }
        try write(text, to: certificatePath, mode: 0o644, replaces: true)
    }

    /// Writes beside the target, makes it durable, then gives it its name: it is never there in part.
    private func write(_ text: String, to path: String, mode: mode_t, replaces: Bool) throws {
        try makeDirectory()
        // Nobody else's, not another thread's either: each would take the other's away.
        let draft = path + ".new-" + String(UInt64.random(in: .min ... .max), radix: 16)
        let descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
        guard descriptor >= 0 else { throw Self.problem("cannot make", draft) }
        defer { unsafe unlink(draft) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try file.write(contentsOf: Data(text.utf8))
        guard fchmod(descriptor, mode) == 0, fsync(descriptor) == 0 else { throw Self.problem("cannot write", draft) }
        // `link` fails where `rename` would replace.
        let isNamed = unsafe replaces ? rename(draft, path) == 0 : link(draft, path) == 0 || errno == EEXIST
        guard isNamed else { throw Self.problem("cannot make", path) }
        let folder = unsafe open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw Self.problem("cannot open", directory) }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw Self.problem("cannot write", directory) }
    }

    private func makeDirectory() throws {
        // Every directory above it that is missing is the owner's alone too.
        let parts = directory.split(separator: "/")
        for end in 1...parts.count {
            let path = "/" + parts[..<end].joined(separator: "/")
            guard unsafe mkdir(path, 0o700) == 0 || errno == EEXIST || FileIdentity.status(of: path) != nil else {
                throw Self.problem("cannot make", path)
            }
        }
    }

    private static func problem(_ what: String, _ path: String) -> AuthorityProblem {
        AuthorityProblem(unsafe "\(what) \(path): \(String(cString: strerror(errno)))")
    }
}

/// What tells a file from the one that takes its place.
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
