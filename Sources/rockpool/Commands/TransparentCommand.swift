// `rockpool transparent rules`: the packet rules that lead connections of this machine or of others to `proxy.transparent`
// (docs/reference/cli.md#transparent-rules).
import ArgumentParser
import Foundation
import RockpoolCore

struct TransparentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transparent", abstract: "Serve clients that know of no proxy.",
        discussion: .examples(
            "rockpool transparent rules"), shouldDisplay: false, subcommands: [Rules.self])

    struct Rules: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rules", abstract: "Print the nftables rules that redirect connections to proxy.transparent.",
            discussion: .examples(
                "rockpool transparent rules",
                "rockpool transparent rules --ports 80 443 8080",
                after: "Nothing is changed. Load them as root: rockpool transparent rules | nft -f -. Remove them: "
                    + "nft delete table inet rockpool. With --tproxy two routes are needed besides, which the first lines name."))
        @Option(name: .long, help: "The user that the server runs as (name or number). Its connections are not redirected.")
        var user: String?
        @Option(name: .long, parsing: .upToNextOption, help: "The ports to redirect.")
        var ports: [Int] = [80, 443]
        @Option(name: .long, help: "Redirect what arrives at this interface from other machines, in place of this machine's own.")
        var interface: String?
        @Flag(name: .long, help: "Lead connections by TPROXY, which leaves their addresses unchanged, in place of redirecting them.")
        var tproxy = false
        @OptionGroup var common: CommonOptions

        func validate() throws {
            guard ports.allSatisfy({ (1...65535).contains($0) }), !ports.isEmpty else { throw ValidationError("--ports are 1 to 65535") }
            let isName = { (text: String) in text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"\\;{}".utf8.contains($0) } }
            guard isName(interface ?? "x"), isName(user ?? "x") else { throw ValidationError("not a name") }
        }

        func run() throws {
            let configuration = try common.load().configuration
            guard let listen = configuration.proxy.transparent.flatMap({ HostAndPort($0) }), listen.port != 0 else {
                throw CommandFailure(.configuration, "proxy.transparent is not set: give it an address, such as 127.0.0.1:7628")
            }
            let rules = TransparentRules(
                listen: listen, ports: ports, user: user ?? String(getuid()), interface: interface, usesTPROXY: tproxy,
                excepted: configuration.proxy.denyAddresses.compactMap { CIDR($0) }.map(\.description))
            print(rules.text)
        }
    }
}
