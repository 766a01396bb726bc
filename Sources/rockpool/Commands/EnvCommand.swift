// `rockpool env` and `rockpool run`: set clients up through environment variables (docs/reference/cli.md#env).
import ArgumentParser
import Foundation
import RockpoolCore
import RockpoolNetwork

struct EnvCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "env", abstract: "Print the environment variables that make clients use and trust the proxy.",
        discussion: .examples(
            "eval \"$(rockpool env)\"",
            "eval \"$(rockpool env --unset)\"                       # takes it back",
            after: "Use it with: eval \"$(rockpool env)\", and take it back with: eval \"$(rockpool env --unset)\""))
    @Option(name: .long, help: "bash, zsh, sh, fish or powershell; by default that of $SHELL.")
    var shell: Shell?
    @Flag(name: .long, help: "Remove the variables instead; what the user had set beside them stays.") var unset = false
    @OptionGroup var login: LoginOptions
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        let shell = shell ?? Shell(environment: environment)
        if unset {
            let (configuration, server) = try await common.effective()
            let files =
                try await server?.authorityFiles(environment: environment)
                ?? AuthorityFiles(stateDirectory: configuration.storage.stateDir)
            let trust = TrustFiles(authority: files, environment: environment)
            for (name, value) in ClientEnvironment.undone(environment, trust, direct: configuration.proxy.noProxy) {
                Display.output.print(value.map { shell.export(name, as: $0) } ?? shell.unset(name))
            }
            return
        }
        for (name, value) in try await ClientEnvironment.current(common: common, login: login, environment: environment).variables {
            Display.output.print(shell.export(name, as: value))
        }
    }
}

extension ClientEnvironment {
    /// The environment for the running server, or for the configured address if none runs.
    static func current(
        common: CommonOptions, login: LoginOptions, environment: [String: String]
    ) async throws -> ClientEnvironment {
        // The command run afterwards gets the original umask.
        let usual = umask(0o077)
        defer { umask(usual) }
        let (configuration, server) = try await common.effective()
        let files =
            try await server?.authorityFiles(environment: environment) ?? AuthorityFiles(stateDirectory: configuration.storage.stateDir)
        if configuration.needsAuthority, server?.isOwn ?? true {
            _ = try files.loadOrMake { try CertificateAuthority.make(host: LeafContexts.machine, now: WallClock.now()) }
        }
        let trust = TrustFiles(authority: files, environment: environment)
        let bundle = try trust.writeBundle()
        let proxy = try await proxy(of: configuration, server: server)
        var client = ClientEnvironment(
            proxy: proxy, bundle: bundle, wgetrc: try bundle.map { try trust.writeWget(bundle: $0) },
            javaTrust: trust.writeJava(), direct: configuration.proxy.noProxy, javaOptions: environment["JAVA_TOOL_OPTIONS"])
        client.hasJava = Tool("java") != nil
        client.login = try login.read(wanted: configuration.proxy.auth != nil)
        client.aptConfig = Tool("apt-get") == nil ? nil : try trust.writeApt(proxy: client.proxyURL, bundle: bundle)
        client.phpDirectory = Tool("php") == nil ? nil : try bundle.map { try trust.writePHP(bundle: $0) }
        client.phpDirectories = environment["PHP_INI_SCAN_DIR"]
        client.nodeAgent = Tool("node") == nil ? nil : try trust.writeNodeAgent()
        client.nodeOptions = environment["NODE_OPTIONS"]
        client.ownExceptions = hosts(in: environment["no_proxy"]) + hosts(in: environment["NO_PROXY"])
        warnAboutExceptions(client.ownExceptions, configuration.upstreams)
        return client
    }

    /// The user's exceptions are kept; an upstream among them is reached without Rockpool.
    private static func warnAboutExceptions(_ hosts: [String], _ upstreams: [Upstream]) {
        for upstream in upstreams {
            guard let entry = hosts.first(where: { names($0, upstream.origin) }) else { continue }
            Display.error.print(
                "rockpool: warning: no_proxy of this shell names \(entry): clients reach upstream \(upstream.name) without Rockpool"
                    .inOneLine)
        }
    }

    /// True if an entry of `no_proxy` covers the origin: `*`, its host, or a domain above it, with or without its port.
    static func names(_ entry: String, _ origin: OriginAddress) -> Bool {
        if entry == "*" { return true }
        let parts = entry.lowercased().split(separator: ":", maxSplits: 1).map(String.init)
        if parts.count == 2, !entry.hasPrefix("["), Int(parts[1]) != origin.port { return false }
        let domain = (parts.first ?? "").drop { $0 == "*" || $0 == "." }
        return !domain.isEmpty && (origin.host == domain || origin.host.hasSuffix("." + domain))
    }

    private static func proxy(of configuration: Configuration, server: RunningServer?) async throws -> HostAndPort {
        let address: String
        if let server {
            address = try await server.client.doors().proxy
        } else {
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

/// `rockpool run` (docs/reference/cli.md).
struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run one command with the variables of `rockpool env`.",
        discussion: .examples(
            "rockpool run -- curl http://api.example.com/v1/notes",
            after: "Everything after -- is the command. Its exit status is returned."))
    @OptionGroup var login: LoginOptions
    @OptionGroup var common: CommonOptions
    @Argument(parsing: .captureForPassthrough, help: "The command and its arguments, after --.")
    var command: [String] = []

    func run() async throws {
        if command.first == "--help" || command.first == "-h" { throw CleanExit.helpRequest(self) }
        let command = command.first == "--" ? Array(command.dropFirst()) : command
        guard let program = command.first else { throw ValidationError("no command given: rockpool run -- CMD…") }
        let environment = ProcessInfo.processInfo.environment
        for (name, value) in try await ClientEnvironment.current(common: common, login: login, environment: environment).variables
        where ClientEnvironment.isUnderstood(name, by: program) {
            setenv(name, value, 1)
        }
        // The command replaces this process, so that it receives the signals and owns the terminal and the exit status.
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        // The threads of the runtime block signals, and exec preserves the signal mask.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        execvp(program, &arguments)
        let code = errno
        Display.error.print("rockpool: \(program) cannot be run: \(String(cString: strerror(code)))".inOneLine)
        Foundation.exit(code == ENOENT ? 127 : 126)
    }
}
