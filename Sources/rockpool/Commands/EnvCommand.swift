// `rockpool env` and `rockpool run`: set clients up through environment variables (docs/reference/cli.md#env).
import ArgumentParser
import Foundation
import RockpoolCore
import RockpoolNetwork

struct EnvCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "env", abstract: "Print the environment variables that make clients use and trust the proxy.",
        discussion: "Use it with: eval \"$(rockpool env)\"")
    @Option(name: .long, help: "bash, zsh, sh, fish or powershell; by default that of $SHELL.")
    var shell: Shell?
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let shell = shell ?? Shell(environment: environment)
        for (name, value) in try await ClientEnvironment.current(common: common, environment: environment).variables {
            Display.output.print(shell.export(name, as: value))
        }
    }
}

extension ClientEnvironment {
    /// The environment for the running server, or for the configured address if none runs.
    static func current(common: CommonOptions, environment: [String: String]) async throws -> ClientEnvironment {
        // The command run afterwards gets the original umask.
        let usual = umask(0o077)
        defer { umask(usual) }
        let configuration = try common.load().configuration
        let files = AuthorityFiles(stateDirectory: configuration.storage.stateDir)
        if configuration.interceptsAnything {
            _ = try files.loadOrMake { try CertificateAuthority.make(host: LeafContexts.machine, now: WallClock.now()) }
        }
        let trust = TrustFiles(authority: files, environment: environment)
        let bundle = try trust.writeBundle()
        return ClientEnvironment(
            proxy: try await proxy(of: configuration), bundle: bundle, wgetrc: try bundle.map { try trust.writeWget(bundle: $0) },
            javaTrust: trust.writeJava(), direct: configuration.proxy.noProxy, javaOptions: environment["JAVA_TOOL_OPTIONS"])
    }

    private static func proxy(of configuration: Configuration) async throws -> HostAndPort {
        let address: String
        do {
            address = try await AdminClient(stateDirectory: configuration.storage.stateDir).doors().proxy
        } catch AdminFailure.notRunning {
            address = configuration.proxy.listen
            Display.error.print("rockpool: warning: no server is running; the variables contain the configured address \(address)")
        }
        guard var place = HostAndPort(address), place.port != 0 else {
            throw CommandFailure(.notRunning, "no server is running, and proxy.listen \(address) names no port")
        }
        if place.isWildcard { place.host = place.host == "::" ? "::1" : "127.0.0.1" }
        return place
    }
}

extension AdminClient {
    /// The addresses that a running server has bound for clients.
    struct Doors: Decodable {
        var proxy: String
        var certificate: String?
    }

    func doors() async throws -> Doors { try await send(.get("/v1/clients"), timeout: .seconds(5)).decoded() }
}
