// The name and the password of `proxy.auth` for clients that `rockpool env` and `rockpool run` set up (docs/reference/cli.md#env).
import ArgumentParser
import RockpoolCore
import RockpoolStore

/// `--proxy-user` and `--proxy-password-file`.
struct LoginOptions: ParsableArguments {
    @Option(name: .long, help: "The name for a proxy with proxy.auth.")
    var proxyUser: String?
    @Option(name: .long, help: "The file with its password in the first line, readable by its owner only.", completion: .file())
    var proxyPasswordFile: String?

    func validate() throws {
        guard (proxyUser == nil) == (proxyPasswordFile == nil) else {
            throw ValidationError("--proxy-user and --proxy-password-file belong together")
        }
    }

    /// - Parameter wanted: True if the proxy wants a password; a warning says so where none is given.
    func read(wanted: Bool) throws -> ProxyLogin? {
        guard let proxyUser, let proxyPasswordFile else {
            if wanted {
                Display.error.print(
                    "rockpool: warning: proxy.auth is set: clients need --proxy-user and --proxy-password-file, else they get 407")
            }
            return nil
        }
        let text: String
        do {
            text = try PrivateFile.text(proxyPasswordFile)
        } catch {
            throw CommandFailure(.usage, "--proxy-password-file: \(error)".inOneLine)
        }
        guard let known = NameAndPassword(name: proxyUser, password: String(text.prefix { !$0.isNewline })) else {
            throw CommandFailure(.usage, "the name or the password is empty, has a control character, or the name a colon")
        }
        return ProxyLogin(known)
    }
}

/// A name and a password in the URL of a proxy.
struct ProxyLogin: Hashable {
    /// `name:password` with every other character than letters, digits, `-`, `.`, `_` and `~` encoded (RFC 3986 §2.1).
    let userinfo: String

    init(_ known: NameAndPassword) { userinfo = "\(Self.encoded(known.name)):\(Self.encoded(known.password))" }

    private static func encoded(_ text: String) -> String {
        text.utf8.map { byte in
            let isPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8.contains(byte)
            guard !isPlain else { return String(UnicodeScalar(byte)) }
            return "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}

/// Upstreams that are declared on the command line (docs/reference/cli.md#serve): offline-first, each with a gateway on a port of its own.
struct FlagUpstreams {
    /// The port of the first gateway.
    private static let firstPort = 7630
    let urls: [String]
    /// What the messages call the source of the URLs.
    var flag = "--upstream"

    /// Adds them to the file's upstreams. Throws `ConfigurationError` if a URL is no origin, or is declared already.
    func add(to configuration: inout Configuration) throws(ConfigurationError) {
        guard !urls.isEmpty else { return }
        for url in urls {
            let (name, port) = (Self.name(for: url, besides: configuration), Self.port(besides: configuration))
            let document = ConfigDocument.map([
                .init(
                    "upstreams",
                    .list([
                        .map([
                            .init("name", .text(name)), .init("origin", .text(url)), .init("gateway", .text("127.0.0.1:\(port)")),
                            .init("policy", .text("offline-first")),
                        ])
                    ]))
            ])
            do throws(ConfigurationError) {
                configuration.upstreams += try ConfigurationSources(environment: [:]).load(yaml: document.json(), named: "--upstream")
                    .configuration.upstreams
            } catch {
                // The place in the document that stands for the flag means nothing to its user.
                let messages = error.problems.map { $0.message.replacing("upstreams[0].origin: ", with: "") }
                throw ConfigurationError(problems: messages.map { Problem(place: .flag(flag), message: $0) })
            }
        }
        let problems = configuration.contradictions().map { Problem(place: .flag(flag), message: "\($0.message)") }
        if !problems.isEmpty { throw ConfigurationError(problems: problems) }
    }

    /// The host as a name: `api.example.com`; with a number if it is taken.
    private static func name(for url: String, besides configuration: Configuration) -> String {
        let behind = url.firstRange(of: "//").map { url[$0.upperBound...] } ?? url[...]
        let host = behind.prefix { $0 != "/" && $0 != ":" && $0 != "?" }
        let name = String(host.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "." || $0 == "-") ? $0 : "-" }.prefix(60))
        let base = name.isEmpty ? "api" : name
        let taken = Set(configuration.upstreams.map(\.name))
        return ([base] + (2...99).map { "\(base)-\($0)" }).first { !taken.contains($0) } ?? base
    }

    private static func port(besides configuration: Configuration) -> Int {
        let taken = Set(
            ([configuration.proxy.listen, configuration.admin.listen] + configuration.upstreams.compactMap(\.gateway))
                .compactMap { HostAndPort($0)?.port })
        return (firstPort...).first { !taken.contains($0) } ?? firstPort
    }
}
