// `rockpool env` and `rockpool run`: clients set up by their environment (contract §1, §6).
import ArgumentParser
import Foundation
import RockpoolCore
import RockpoolNetwork

struct EnvCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "env", abstract: "Print the variables that send clients through the proxy and let them trust it.",
        discussion: "Use it with: eval \"$(rockpool env)\"")
    @Option(name: .long, help: "bash, zsh, sh, fish or powershell; without it the one in $SHELL.")
    var shell: Shell?
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let shell = shell ?? Shell(environment: environment)
        for (name, value) in try await ClientEnvironment.current(common, environment).variables {
            Display.output.print(shell.export(name, value))
        }
    }
}

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run one command with the variables of `rockpool env`.",
        discussion: "Everything after -- is the command. Its exit status is ours.")
    @OptionGroup var common: CommonOptions
    @Argument(parsing: .captureForPassthrough, help: "The command and its arguments, after --.")
    var command: [String] = []

    func run() async throws {
        if command.first == "--help" || command.first == "-h" { throw CleanExit.helpRequest(self) }
        let command = command.first == "--" ? Array(command.dropFirst()) : command
        guard let program = command.first else { throw ValidationError("there is no command: rockpool run -- CMD…") }
        for (name, value) in try await ClientEnvironment.current(common, ProcessInfo.processInfo.environment).variables {
            setenv(name, value, 1)
        }
        // In our place: its signals, its terminal and its exit status are its own.
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        // The threads of our runtime block signals, and what is blocked stays so over exec.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        execvp(program, &arguments)
        let code = errno
        Display.error.print("rockpool: \(program) cannot be run: \(String(cString: strerror(code)))".inOneLine)
        Foundation.exit(code == ENOENT ? 127 : 126)
    }
}

extension ClientEnvironment {
    /// That of the running server; of the configured address when none runs.
    static func current(_ common: CommonOptions, _ environment: [String: String]) async throws -> ClientEnvironment {
        // What is run afterwards makes its files as it always did.
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
            proxy: try await proxy(configuration), bundle: bundle, wgetrc: try bundle.map { try trust.writeWget(bundle: $0) },
            javaTrust: trust.writeJava(), direct: configuration.proxy.noProxy, javaOptions: environment["JAVA_TOOL_OPTIONS"])
    }

    private static func proxy(_ configuration: Configuration) async throws -> HostAndPort {
        let address: String
        do {
            address = try await AdminClient(stateDirectory: configuration.storage.stateDir).doors().proxy
        } catch AdminFailure.notRunning {
            address = configuration.proxy.listen
            Display.error.print("rockpool: warning: no server is running; the variables name \(address), where it will be")
        }
        guard var place = HostAndPort(address), place.port != 0 else {
            throw CommandFailure(.notRunning, "no server is running, and proxy.listen \(address) names no port")
        }
        if place.isWildcard { place.host = place.host == "::" ? "::1" : "127.0.0.1" }
        return place
    }
}

extension AdminClient {
    /// Where a running server takes clients.
    struct Doors: Decodable {
        var proxy: String
        var certificate: String?
    }

    func doors() async throws -> Doors { try await send(.get("/v1/clients"), timeout: .seconds(5)).decoded() }
}
