// `rockpool add URL`: one more API for the Rockpool of this machine, wherever it runs (docs/reference/cli.md#add).
import ArgumentParser
import Foundation
import RockpoolCore

struct AddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Declare an API: in the file of the running server, which applies it at once.",
        discussion: """
            Looks for a description of the API as `rockpool init` does, shows the lines that it writes, and prints the address for clients. \
            Without a running server the lines are written to your configuration file, for the next start.

            EXAMPLES
              rockpool add https://api.example.com
              rockpool add https://api.example.com --name notes --gateway 127.0.0.1:7640
            """)
    @Argument(help: "The URL of the API: https://api.example.com.") var url: String
    @Option(name: .long, help: "The name of the upstream; by default the host.") var name: String?
    @Option(name: .long, help: "The address of its gateway; by default the next free port from 7630 on.") var gateway: String?
    @Flag(name: .long, help: "Show the lines, change nothing.") var dryRun = false
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let change = try await ConfigurationChange(common)
        let inForce = change.server?.configuration ?? change.before
        let api = APIAddress(url)
        if let known = try api.owner(among: inForce.upstreams) {
            Display.output.print("\(known.place) is declared already, as \(known.name)".inOneLine)
            if known.resources.isEmpty {
                Display.output.print("its lists and items are learned from its traffic: rockpool learned ls; or proposed: rockpool learn")
            }
            return try await tell(known, by: change.server)
        }
        let declared = try api.declared(besides: inForce, name: name)
        if !dryRun { try change.checkWritable() }
        let address = try gateway ?? LocalPort.freeAddress(from: declared.gateway)
        let answer = try APIProbe(origin: declared.origin).usual(below: api.path)
        if case .unreachable(let reason) = answer {
            let back = dryRun ? "" : "; it is declared all the same, and taken back by: rockpool remove \(declared.name)"
            Display.error.print("rockpool: \(declared.place) cannot be reached: \(reason)\(back)".inOneLine)
        }
        let proposed = ProposedConfiguration(place: declared.place, name: declared.name, api: answer.proposal, gateway: address)
        let edited = try change.edit.adding(proposed.entry)
        change.show(change.edit.added(in: edited), mark: "+")
        guard !dryRun else { return }
        try await change.apply(edited)
        guard let server = change.server else {
            return Display.output.print(
                "no server runs; start it, and wait for \"rockpool ready\": rockpool serve\(common.config.map { " --config \($0)" } ?? "")"
                    .inOneLine)
        }
        try await tell(declared, by: server)
    }

    /// Prints how clients reach the API.
    private func tell(_ upstream: Upstream, by server: RunningServer?) async throws {
        struct Clients: Decodable {
            var gateways: [String: String]
            var proxy: String
        }
        guard let server else { return }
        let clients = try await server.client.send(.get("/v1/clients")).decoded(as: Clients.self)
        if let gateway = clients.gateways[upstream.name] {
            Display.output.print("use http://\(gateway) in place of \(upstream.place)".inOneLine)
        }
        Display.output.print("or run a program through the proxy: rockpool run -- PROGRAM")
    }
}

/// The URL of an API as a person gives it: its origin, with or without a path.
struct APIAddress {
    let url: String

    init(_ url: String) { self.url = url }

    private var slash: String.Index? {
        url.firstRange(of: "://").flatMap { url[$0.upperBound...].firstIndex(of: "/") }
    }

    /// The path, without a slash at its end.
    var path: String {
        guard let slash else { return "" }
        let path = url[slash...].prefix { !"?#".contains($0) }
        return String(path.hasSuffix("/") ? path.dropLast() : path)
    }

    private var originText: String { slash.map { String(url[..<$0]) } ?? url }

    private var origin: OriginAddress {
        get throws { try Self.upstream(at: originText, besides: Configuration(), name: nil).origin }
    }

    /// The declared API that the URL belongs to: of those of its origin the one with the longest path that covers it.
    func owner(among upstreams: [Upstream]) throws -> Upstream? {
        let origin = try origin
        return upstreams.filter { $0.origin == origin && $0.covers(path: path) }.max { $0.basePath.count < $1.basePath.count }
    }

    /// The upstream for the URL: its whole origin; beside another API of that origin the one of its path.
    func declared(besides others: Configuration = Configuration(), name: String? = nil) throws -> Upstream {
        let origin = try origin
        let isAlone = !others.upstreams.contains { $0.origin == origin }
        return try Self.upstream(at: isAlone ? originText : originText + path, besides: others, name: name)
    }

    /// The upstream of exactly this URL, as the key `origin` of a configuration means it.
    func exact(besides others: Configuration = Configuration(), name: String? = nil) throws -> Upstream {
        try Self.upstream(at: url, besides: others, name: name)
    }

    /// An upstream, with a name and a gateway of its own.
    private static func upstream(at url: String, besides others: Configuration, name: String?) throws -> Upstream {
        var configuration = others
        try FlagUpstreams(urls: [url], flag: "URL").add(to: &configuration)
        guard var upstream = configuration.upstreams.last else { throw ValidationError("\(url) is no URL of an API") }
        if let name { upstream.name = name }
        return upstream
    }
}
