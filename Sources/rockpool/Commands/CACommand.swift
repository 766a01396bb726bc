// `rockpool ca`: the local certificate authority and the stores that trust it (docs/reference/cli.md#ca).
import ArgumentParser
import Foundation
import RockpoolCore
import RockpoolNetwork

struct CACommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca", abstract: "Make, show, install or replace the certificate authority for decrypted hosts.",
        discussion: .examples(
            "rockpool ca init && rockpool ca install",
            "rockpool ca show",
            after: "The authority belongs to this machine; only hosts named in the configuration are decrypted. Its key can impersonate "
                + "any site to clients that trust it, so the key never leaves the state directory."),
        subcommands: [Initialise.self, Show.self, Install.self, Uninstall.self, Rotate.self])

    struct Initialise: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init", abstract: "Make the authority unless it exists.",
            discussion: .examples(
                "rockpool ca init",
                "rockpool ca init --constrain example.com",
                after: "A repeated run has no effect."))
        @OptionGroup var constraint: Constraint
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let files = try await options.common.authorityFiles()
            let wanted = constraint.domains
            let authority = try files.loadOrMake { try .made(constrainedTo: wanted) }.authority
            // A repeated `init` succeeds only with the same domains; different ones need a new authority.
            if !wanted.isEmpty, Set(authority.domains) != Set(wanted) {
                let scope = authority.domains.isEmpty ? "every domain" : authority.domains.joined(separator: " ")
                let command = "rockpool ca rotate --constrain " + wanted.joined(separator: " ")
                throw CommandFailure(.failed, "there is already an authority, which signs for \(scope); replace it with: \(command)")
            }
            try options.print(AdminReply(status: 200, body: CAReport.of(files, stores: []).encoded), as: CAReport.self)
        }
    }

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Show the authority, and the stores that trust it.",
            discussion: .examples(
                "rockpool ca show"))
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let report = try CAReport.of(await options.common.authorityFiles(), stores: TrustStores.found())
            try options.print(AdminReply(status: 200, body: report.encoded), as: CAReport.self)
        }
    }

    struct Rotate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rotate", abstract: "Replace the authority by a new one, also in a running server.",
            discussion: .examples(
                "rockpool ca rotate",
                after: "Clients trust the new authority only after `rockpool ca install` or a new `rockpool env`."))
        @OptionGroup var constraint: Constraint
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let files = try await options.common.authorityFiles()
            try files.replace(with: .made(constrainedTo: constraint.domains))
            try options.print(AdminReply(status: 200, body: CAReport.of(files, stores: []).encoded), as: CAReport.self)
            Display.error.print("rockpool: for stores that trusted the old authority run: rockpool ca install")
        }
    }

    /// `--constrain`: the domains for which the authority can sign (RFC 5280 §4.2.1.10).
    struct Constraint: ParsableArguments {
        @Option(
            name: .customLong("constrain"), parsing: .upToNextOption,
            help: "The only domains it can sign for, including their subdomains.", transform: Self.domain)
        var domains: [String] = []

        /// Parses a domain. Throws the message for the user.
        private static func domain(from text: String) throws -> String {
            guard let authority = try? Authority.parse(text[...]), authority.port == nil, IPAddress(authority.host) == nil else {
                throw ValidationError("give a domain such as example.com, which includes its subdomains")
            }
            return authority.host
        }
    }

    /// The stores to change, and the option to skip the confirmation.
    struct Change: ParsableArguments {
        @Option(name: .long, help: "Only this kind of store: system, nss or java.")
        var store: TrustStoreKind?
        @Flag(name: .long, help: "Skip the confirmation.")
        var yes = false
        @OptionGroup var common: CommonOptions

        /// - Parameter makes: true to make the database of browsers where that kind is named and there is none.
        func stores(makes: Bool = false) throws -> [any TrustStore] {
            var found = TrustStores.found().filter { store == nil || $0.kind == store }
            if makes, store == .nss, found.isEmpty, let made = try NSSTrust.made(home: NSHomeDirectory()) { found = [made] }
            guard !found.isEmpty else {
                throw CommandFailure(
                    .failed,
                    "no such trust store found (system needs ca-certificates, nss certutil and a browser's profile, java keytool)")
            }
            return found
        }

        /// Requests confirmation from the user. Throws if there is no terminal and no `--yes`.
        func isAgreed(_ question: String) throws -> Bool {
            if yes { return true }
            guard isatty(STDIN_FILENO) == 1 else { throw CommandFailure(.usage, "\(question) — confirm with --yes") }
            Display.error.write("\(question)? [y/N] ")
            return ["y", "yes"].contains(readLine()?.lowercased() ?? "")
        }

        /// Applies `verb` to every store. A failure is printed and does not stop the others; it makes the command fail.
        func each(making makes: Bool = false, _ verb: (any TrustStore) throws -> Void) throws {
            let stores = try self.stores(makes: makes)
            var failures = 0
            for store in stores {
                do {
                    try verb(store)
                } catch let failure as CommandFailure where failure.status == .failed {
                    failures += 1
                    Display.error.print("rockpool: \(store.place): \(failure.message)")
                }
            }
            if failures > 0 { throw CommandFailure(.failed, "\(failures) of \(stores.count) stores could not be changed") }
        }
    }

    struct Install: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "install", abstract: "Add the authority to the trust stores of the system, browsers and Java.",
            discussion: .examples(
                "rockpool ca install",
                "rockpool ca install --store nss --yes                 # browsers only",
                after: "Debian's store needs root; NSS databases need certutil (libnss3-tools)."))
        @OptionGroup var change: Change

        func run() async throws {
            let files = try await change.common.authorityFiles()
            guard try files.load() != nil else { throw CAReport.missing }
            try change.each(making: true) { store in
                if store.holds(files) {
                    Display.output.print("already trusted: \(store.place)")
                } else if try change.isAgreed("Add it to \(store.place)") {
                    try store.install(files)
                    Display.output.print("now trusted: \(store.place)")
                }
            }
        }
    }

    struct Uninstall: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "uninstall", abstract: "Remove the authority from every trust store.",
            discussion: .examples(
                "rockpool ca uninstall --yes",
                after: "The authority itself is kept."))
        @OptionGroup var change: Change

        func run() async throws {
            try change.each { store in
                guard try change.isAgreed("Remove it from \(store.place)") else { return }
                try store.remove()
                Display.output.print("not trusted: \(store.place)")
            }
        }
    }
}

extension TrustStoreKind: ExpressibleByArgument {}

extension CertificateAuthority {
    /// Makes a new authority for this machine, valid from now.
    static func made(constrainedTo domains: [String]) throws -> CertificateAuthority {
        try make(host: LeafContexts.machine, constrainedTo: domains, now: WallClock.now())
    }
}

extension CommonOptions {
    /// The authority's files of the running server, else of this configuration.
    func authorityFiles() async throws -> AuthorityFiles {
        AuthorityFiles(stateDirectory: try await effective().configuration.storage.stateDir)
    }
}

/// The authority's properties, without the key itself.
struct CAReport: TabularReport, Encodable {
    struct Store: Codable {
        var kind: String
        var place: String
        var trusted: Bool
    }

    var subject: String
    /// SHA-256 of the certificate.
    var fingerprint: String
    var notBefore: String
    var notAfter: String
    var certificate: String
    var key: String
    var stores: [Store]

    static let missing = CommandFailure(.failed, "there is no certificate authority yet; make it with: rockpool ca init")

    /// Throws `CommandFailure` if there is no authority, `AuthorityProblem` if it cannot be used.
    static func of(_ files: AuthorityFiles, stores: [any TrustStore]) throws -> CAReport {
        guard let authority = try files.load() else { throw missing }
        return CAReport(
            subject: authority.subject, fingerprint: try authority.fingerprint, notBefore: RFC3339.format(authority.notBefore),
            notAfter: RFC3339.format(authority.notAfter), certificate: files.certificatePath, key: files.keyPath,
            stores: stores.map { Store(kind: $0.kind.rawValue, place: $0.place, trusted: $0.holds(files)) })
    }

    var tables: [TextTable] {
        let facts: [(String, TextTable.Cell)] = [
            ("subject", "\(subject)"), ("fingerprint", "\(fingerprint)"), ("valid from", "\(ForPeople.time(notBefore))"),
            ("valid until", "\(ForPeople.time(notAfter))"), ("certificate", "\(certificate)"), ("key", "\(key)"),
        ]
        let rows: [[TextTable.Cell]] = stores.map { store in
            ["\(store.kind)", "\(store.place)", store.trusted ? .init("trusted", .good) : .init("not trusted", .warning)]
        }
        return [.facts(facts), TextTable(columns: [.text("store"), .text("place"), .text("")], rows: rows)]
    }
}
