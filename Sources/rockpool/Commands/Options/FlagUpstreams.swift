// The upstreams of `serve --upstream URL` (docs/reference/cli.md#serve).
import RockpoolCore

/// Upstreams that are declared on the command line: offline-first, each with a gateway on a port of its own.
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
