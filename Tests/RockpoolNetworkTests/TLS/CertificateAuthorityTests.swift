// The authority and its leaf certificates, checked by openssl, which shares no code with the implementation (RFC 5280).
import Crypto
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolNetwork

@Suite struct CertificateAuthorityTests {
    private let now = Timestamp(seconds: 1_767_225_600)

    private func openssl(_ arguments: String...) async throws -> Command { try await Command.run("/usr/bin/openssl", arguments) }

    /// Runs `openssl verify` with the time of the test.
    private func verify(_ leaf: [UInt8], by authority: CertificateAuthority, _ options: String...) async throws -> Command {
        let scratch = try Scratch()
        let root = try scratch.write(authority.certificatePEM, to: "ca.pem")
        try Files.write(leaf, to: scratch.path + "/leaf.der")
        return try await Command.run(
            "/usr/bin/openssl",
            ["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", root, "-attime", "\(now.seconds)"] + options
                + [scratch.path + "/leaf.der"])
    }

    @Test(arguments: [("api.example.com", "-verify_hostname"), ("10.1.2.3", "-verify_ip"), ("::1", "-verify_ip")])
    func aLeafIsGoodForItsHostAndNoOther(host: String, flag: String) async throws {
        let authority = try CertificateAuthority.make(host: "pool", now: now)
        let leaf = try authority.leaf(for: host, key: P256.Signing.PrivateKey().publicKey, now: now)
        let good = try await verify(leaf, by: authority, flag, host)
        #expect(good.status == 0, "\(good.output) \(good.errors)")
        let other = flag == "-verify_ip" ? "10.9.9.9" : "other.example.com"
        #expect(try await verify(leaf, by: authority, flag, other).status != 0)
        let stranger = try CertificateAuthority.make(host: "pool", now: now)
        #expect(try await verify(leaf, by: stranger).status != 0)
    }

    @Test func aLeafLivesAWeekAndBeginsADayAgo() async throws {
        let authority = try CertificateAuthority.make(host: "pool", now: now)
        let leaf = try authority.leaf(for: "a.test", key: P256.Signing.PrivateKey().publicKey, now: now)
        for (seconds, isGood) in [(-86_400, true), (-86_401, false), (6 * 86_400 - 1, true), (6 * 86_400 + 1, false)] {
            #expect(
                try await verify(leaf, by: authority, "-attime", "\(now.seconds + Int64(seconds))").status == (isGood ? 0 : 2), "\(seconds)"
            )
        }
    }

    @Test func aNameTooLongForASubjectIsInTheAlternativeName() async throws {
        let host = String(repeating: "a", count: 60) + ".example.com"
        let authority = try CertificateAuthority.make(host: "pool", now: now)
        let leaf = try authority.leaf(for: host, key: P256.Signing.PrivateKey().publicKey, now: now)
        #expect(try await verify(leaf, by: authority, "-verify_hostname", host).status == 0)
    }

    @Test func theAuthoritySignsHostsAndNothingElse() async throws {
        let authority = try CertificateAuthority.make(host: "pool", now: now)
        let scratch = try Scratch()
        let text = try await openssl("x509", "-noout", "-text", "-in", try scratch.write(authority.certificatePEM, to: "ca.pem")).output
        for part in ["CA:TRUE, pathlen:0", "Certificate Sign, CRL Sign", "prime256v1", "Rockpool CA (pool) 2026-01-01"] {
            #expect(text.contains(part), "\(part) in \(text)")
        }
        let print = try await openssl("x509", "-noout", "-fingerprint", "-sha256", "-in", scratch.path + "/ca.pem").output
        #expect(print.contains(try authority.fingerprint))
    }

    @Test func aConstrainedAuthorityCannotSignForOthers() async throws {
        let authority = try CertificateAuthority.make(host: "pool", constrainedTo: ["example.com"], now: now)
        let key = P256.Signing.PrivateKey().publicKey
        for (host, isGood) in [("api.example.com", true), ("bank.test", false), ("10.1.2.3", false)] {
            #expect(try await verify(authority.leaf(for: host, key: key, now: now), by: authority).status == (isGood ? 0 : 2), "\(host)")
        }
    }

    @Test func theKeyIsKeptForTheOwnerAlone() async throws {
        let scratch = try Scratch()
        let files = AuthorityFiles(stateDirectory: scratch.path + "/deep/state")
        let (made, isNew) = try files.loadOrMake { try .make(host: "pool", now: now) }
        #expect(isNew && Files.mode(of: files.keyPath) == 0o600 && Files.mode(of: files.directory) == 0o700)
        #expect(try Files.text(of: files.certificatePath) == made.certificatePEM)
        #expect(try await openssl("pkey", "-noout", "-in", files.keyPath).status == 0)
        let (again, isNewer) = try files.loadOrMake { throw AuthorityProblem("not needed") }
        #expect(try !isNewer && again.fingerprint == made.fingerprint)
        for mode in [0o640, 0o604, 0o644] {
            try Files.setMode(mode, of: files.keyPath)
            #expect(throws: AuthorityProblem.self) { try files.load() }
        }
    }

    @Test func aReplacedAuthorityIsWholeAtOnce() throws {
        let scratch = try Scratch()
        let files = AuthorityFiles(stateDirectory: scratch.path)
        let (old, _) = try files.loadOrMake { try .make(host: "pool", now: now) }
        let identity = files.identity
        let new = try CertificateAuthority.make(host: "pool", now: now)
        try files.replace(with: new)
        #expect(files.identity != identity && identity != nil)
        #expect(try files.load()?.fingerprint == new.fingerprint && new.fingerprint != old.fingerprint)
        // State after a crash between the two writes: the certificate in the key file counts, and the certificate file is repaired.
        try Files.write(Array(old.certificatePEM.utf8), to: files.certificatePath)
        #expect(try files.load()?.fingerprint == new.fingerprint)
        #expect(try Files.text(of: files.certificatePath) == new.certificatePEM)
    }

    @Test func aKeyWithAnotherCertificateIsRefused() throws {
        let (one, other) = (try CertificateAuthority.make(host: "a", now: now), try CertificateAuthority.make(host: "b", now: now))
        let key = try one.privatePEM.replacing(one.certificatePEM, with: "")
        #expect(try CertificateAuthority(privatePEM: key, certificate: one.certificatePEM).fingerprint == one.fingerprint)
        #expect(throws: AuthorityProblem.self) { try CertificateAuthority(privatePEM: key, certificate: other.certificatePEM) }
        #expect(throws: AuthorityProblem.self) { try CertificateAuthority(privatePEM: key, certificate: nil) }
        #expect(throws: AuthorityProblem.self) { try CertificateAuthority(privatePEM: one.certificatePEM, certificate: nil) }
    }

    enum Unfit: String, CaseIterable { case anotherCurve, noAuthority, rsa, noPEM, notASigner }

    /// The key and certificate are made by openssl.
    @Test(arguments: Unfit.allCases) func whatCannotSignLeavesIsRefusedInOneLine(unfit: Unfit) async throws {
        let scratch = try Scratch()
        let (key, certificate) = (scratch.path + "/key", scratch.path + "/certificate")
        let kind = unfit == .rsa ? ["rsa:2048"] : ["ec", "-pkeyopt", "ec_paramgen_curve:\(unfit == .anotherCurve ? "P-384" : "P-256")"]
        let constraint = unfit == .noAuthority ? "CA:FALSE" : "CA:TRUE"
        let usage = unfit == .notASigner ? ["-addext", "keyUsage=critical,digitalSignature"] : []
        let made = try await Command.run(
            "/usr/bin/openssl",
            ["req", "-x509", "-nodes", "-keyout", key, "-out", certificate, "-subj", "/CN=x", "-newkey"] + kind
                + ["-addext", "basicConstraints=critical,\(constraint)"] + usage)
        #expect(made.status == 0, "\(made.errors)")
        let files = AuthorityFiles(stateDirectory: scratch.path + "/state")
        _ = try files.loadOrMake { try .make(host: "pool", now: now) }
        let pair = unfit == .noPEM ? "-----BEGIN nonsense" : try Files.text(of: key) + Files.text(of: certificate)
        try Files.write(Array(pair.utf8), to: files.keyPath)
        try Files.setMode(0o600, of: files.keyPath)
        let problem = try #require(throws: AuthorityProblem.self) { try files.load() }
        #expect(problem.description.hasPrefix(files.keyPath) && !problem.description.contains("\n"), "\(problem)")
    }

    /// A P-256 pair with the CA constraint is accepted, so each pair of the test above is refused for the defect it names.
    @Test func anAuthorityMadeElsewhereIsTaken() async throws {
        let scratch = try Scratch()
        let files = AuthorityFiles(stateDirectory: scratch.path + "/state")
        _ = try files.loadOrMake { try .make(host: "pool", now: now) }
        let (key, certificate) = (scratch.path + "/key", scratch.path + "/certificate")
        let made = try await openssl(
            "req", "-x509", "-nodes", "-keyout", key, "-out", certificate, "-subj", "/CN=x", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256")
        #expect(made.status == 0, "\(made.errors)")
        try Files.write(Array((Files.text(of: key) + Files.text(of: certificate)).utf8), to: files.keyPath)
        try Files.setMode(0o600, of: files.keyPath)
        #expect(try files.load()?.subject == "CN=x")
    }

    /// 16 tasks of one process: they must not overwrite each other's temporary files.
    @Test func manyMakersAtOnceLeaveOneAuthority() async throws {
        let scratch = try Scratch()
        let files = AuthorityFiles(stateDirectory: scratch.path)
        let made = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<16 {
                group.addTask { try files.loadOrMake { try .make(host: "pool", now: now) }.authority.fingerprint }
            }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(made.count == 1)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<16 { group.addTask { try files.replace(with: .make(host: "pool", now: now)) } }
            try await group.waitForAll()
        }
        #expect(try files.load() != nil)
        #expect(try FileManager.default.contentsOfDirectory(atPath: files.directory).sorted() == ["ca.key", "ca.pem"])
    }
}
