// `rockpool ca`: the local certificate authority, and where it is trusted (contract §1, §6).
import ArgumentParser
import Foundation
import RockpoolCore
import RockpoolNetwork

struct CACommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca", abstract: "The certificate authority that signs for decrypted hosts: make it, show it, have it trusted.",
        discussion: "It is this machine's own and decrypts nothing that the configuration does not name. Whoever reads its key can pose as "
            + "any site to those who trust it: the key never leaves the state directory.",
        subcommands: [Initialise.self, Show.self, Install.self, Uninstall.self, Rotate.self])

    struct Initialise: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "init", abstract: "Make it, unless there is one.", discussion: "May be run again without effect.")
        @OptionGroup var constraint: Constraint
        @OptionGroup var options: ReadingOptions

        func run() throws {
            let files = try options.common.authorityFiles()
            let wanted = constraint.domains
            let authority = try files.loadOrMake { try .made(constrainedTo: wanted) }.authority
            // Asked for again it is there as asked for; a wider or narrower one is another authority.
            if !wanted.isEmpty, Set(authority.domains) != Set(wanted) {
                let scope = authority.domains.isEmpty ? "every domain" : authority.domains.joined(separator: " ")
                let command = "rockpool ca rotate --constrain " + wanted.joined(separator: " ")
                throw CommandFailure(.failed, "there is one already, which signs for \(scope); replace it with: \(command)")
            }
            try options.print(AdminReply(status: 200, body: CAReport.of(files, stores: []).encoded), as: CAReport.self)
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "show", abstract: "Show it, and which stores trust it.")
        @OptionGroup var options: ReadingOptions

        func run() throws {
            let report = try CAReport.of(try options.common.authorityFiles(), stores: TrustStores.found())
            try options.print(AdminReply(status: 200, body: report.encoded), as: CAReport.self)
        }
    }

    struct Rotate: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rotate", abstract: "Put a new one in its place, at once also in a running server.",
            discussion: "Clients trust the new one only after `rockpool ca install`, or a new `rockpool env`.")
        @OptionGroup var constraint: Constraint
        @OptionGroup var options: ReadingOptions

        func run() throws {
            let files = try options.common.authorityFiles()
            try files.replace(with: .made(constrainedTo: constraint.domains))
            try options.print(AdminReply(status: 200, body: CAReport.of(files, stores: []).encoded), as: CAReport.self)
            Display.error.print("rockpool: stores that trusted the old one need: rockpool ca install")
        }
    }

    /// `--constrain`: what the authority can sign for at most (RFC 5280 §4.2.1.10).
    struct Constraint: ParsableArguments {
        @Option(
            name: .customLong("constrain"), parsing: .upToNextOption,
            help: "The only domains it can sign for, each with everything below it.", transform: Self.domain)
        var domains: [String] = []

        /// A domain as certificates hold it. Throws what is shown as the reason.
        private static func domain(_ text: String) throws -> String {
            guard let authority = try? Authority.parse(text[...]), authority.port == nil, IPAddress(authority.host) == nil else {
                throw ValidationError("write a domain such as example.com, which holds for every name below it too")
            }
            return authority.host
        }
    }

    /// Which stores, and whether to ask first.
    struct Change: ParsableArguments {
        @Option(name: .long, help: "Only this kind of store: system, nss or java.")
        var store: TrustStoreKind?
        @Flag(name: .long, help: "Do not ask.")
        var yes = false
        @OptionGroup var common: CommonOptions

        func stores() throws -> [any TrustStore] {
            let found = TrustStores.found().filter { store == nil || $0.kind == store }
            guard !found.isEmpty else {
                throw CommandFailure(
                    .failed,
                    "there is no such store here (system needs ca-certificates, nss certutil and a browser's profile, java keytool)")
            }
            return found
        }

        /// Whether the person agrees. Nobody is asked who cannot answer.
        func isAgreed(_ question: String) throws -> Bool {
            if yes { return true }
            guard isatty(STDIN_FILENO) == 1 else { throw CommandFailure(.usage, "\(question) — say so with --yes") }
            Display.error.write("\(question)? [y/N] ")
            return ["y", "yes"].contains(readLine()?.lowercased() ?? "")
        }

        /// Does `verb` to every store. One that fails is named and holds up no other; then the end is a failure.
        func each(_ verb: (any TrustStore) throws -> Void) throws {
            let stores = try self.stores()
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

    struct Install: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "install", abstract: "Have it trusted by the system, browsers and Java.",
            discussion: "Debian's store needs root; NSS databases need certutil (libnss3-tools).")
        @OptionGroup var change: Change

        func run() throws {
            let files = try change.common.authorityFiles()
            guard try files.load() != nil else { throw CAReport.missing }
            try change.each { store in
                if store.holds(files) {
                    Display.output.print("trusted already: \(store.place)")
                } else if try change.isAgreed("Add it to \(store.place)") {
                    try store.install(files)
                    Display.output.print("trusted now: \(store.place)")
                }
            }
        }
    }

    struct Uninstall: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "uninstall", abstract: "Take it out of every store again.", discussion: "The authority itself stays.")
        @OptionGroup var change: Change

        func run() throws {
            try change.each { store in
                guard try change.isAgreed("Take it out of \(store.place)") else { return }
                try store.remove()
                Display.output.print("not trusted: \(store.place)")
            }
        }
    }
}

extension TrustStoreKind: ExpressibleByArgument {}

extension CertificateAuthority {
    /// A new one of this machine, now.
    static func made(constrainedTo domains: [String]) throws -> CertificateAuthority {
        try make(host: LeafContexts.machine, constrainedTo: domains, now: WallClock.now())
    }
}

extension CommonOptions {
    /// The authority's files of this configuration.
    func authorityFiles() throws -> AuthorityFiles {
        AuthorityFiles(stateDirectory: try load().configuration.storage.stateDir)
    }
}
