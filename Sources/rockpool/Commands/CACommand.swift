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
        @Option(name: .long, parsing: .upToNextOption, help: "The only domains it can sign for.")
        var constrain: [String] = []
        @OptionGroup var options: ReadingOptions

        func run() throws {
            let files = try options.common.authorityFiles()
            let isNew = try naming { try files.loadOrMake { try .made(constrainedTo: constrain) } }.isNew
            if !isNew, !constrain.isEmpty {
                throw CommandFailure(.failed, "there is one already; make a constrained one with: rockpool ca rotate --constrain …")
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
        @Option(name: .long, parsing: .upToNextOption, help: "The only domains it can sign for.")
        var constrain: [String] = []
        @OptionGroup var options: ReadingOptions

        func run() throws {
            let files = try options.common.authorityFiles()
            try naming { try files.replace(with: .made(constrainedTo: constrain)) }
            try options.print(AdminReply(status: 200, body: CAReport.of(files, stores: []).encoded), as: CAReport.self)
            Display.error.print("rockpool: stores that trusted the old one need: rockpool ca install")
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
    }

    struct Install: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "install", abstract: "Have it trusted by the system, browsers and Java.",
            discussion: "Debian's store needs root; NSS databases need certutil (libnss3-tools).")
        @OptionGroup var change: Change

        func run() throws {
            let files = try change.common.authorityFiles()
            guard try naming({ try files.load() }) != nil else { throw CAReport.missing }
            for store in try change.stores() {
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
            for store in try change.stores() where try change.isAgreed("Take it out of \(store.place)") {
                try store.remove()
                Display.output.print("not trusted: \(store.place)")
            }
        }
    }

    /// Problems with the files are the configuration's.
    fileprivate static func naming<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch let problem as AuthorityProblem { throw CommandFailure(.configuration, "\(problem)") }
    }
}

private func naming<Value>(_ body: () throws -> Value) throws -> Value { try CACommand.naming(body) }

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
