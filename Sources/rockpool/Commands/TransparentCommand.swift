// `rockpool transparent rules`: the packet rules that lead connections of this machine or of others to `proxy.transparent`
// (docs/reference/cli.md#transparent-rules).
import ArgumentParser
import Foundation
import RockpoolCore

struct TransparentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transparent", abstract: "Serve clients that know of no proxy.",
        discussion: .examples(
            "rockpool transparent rules"), subcommands: [Rules.self])

    struct Rules: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rules", abstract: "Print the nftables rules that redirect connections to proxy.transparent.",
            discussion: .examples(
                "rockpool transparent rules",
                "rockpool transparent rules --ports 80 443 8080",
                after: "Nothing is changed. Load them as root: rockpool transparent rules | nft -f -. Remove them: "
                    + "nft delete table inet rockpool."))
        @Option(name: .long, help: "The user that the server runs as (name or number). Its connections are not redirected.")
        var user: String?
        @Option(name: .long, parsing: .upToNextOption, help: "The ports to redirect.")
        var ports: [Int] = [80, 443]
        @Option(name: .long, help: "Redirect what arrives at this interface from other machines, in place of this machine's own.")
        var interface: String?
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
                listen: listen, ports: ports, user: user ?? String(getuid()), interface: interface,
                excepted: configuration.proxy.denyAddresses.compactMap { CIDR($0) }.map(\.description))
            print(rules.text)
        }
    }
}

/// The rules as a script for nft(8).
struct TransparentRules {
    let listen: HostAndPort
    let ports: [Int]
    /// The user whose connections are not redirected.
    let user: String
    /// The interface at which other machines' connections arrive; nil redirects this machine's own.
    let interface: String?
    /// Networks that are never connected to, so that redirecting to them has no use.
    let excepted: [String]

    var text: String {
        """
        # The connections of \(subject) to the ports \(list) lead to Rockpool at \(listen).
        # Load: rockpool transparent rules | nft -f -      Remove: nft delete table inet rockpool
        table inet rockpool
        delete table inet rockpool
        table inet rockpool {
            chain \(interface == nil ? "output" : "prerouting") {
                type nat hook \(interface == nil ? "output priority -100" : "prerouting priority dstnat"); policy accept;
        \(exceptions.map { "        \($0) accept\n" }.joined())        \(match)tcp dport { \(list) } \(redirection)
            }
        }
        """
    }

    private var list: String { ports.map(String.init).joined(separator: ", ") }
    private var subject: String { interface.map { "other machines at \($0)" } ?? "this machine, except those of user \(user)," }
    private var match: String { (interface.map { "iifname \"\($0)\" " } ?? "") + (listen.host.contains(":") ? "" : "meta nfproto ipv4 ") }
    private var redirection: String { "redirect to :\(listen.port)" }

    private var exceptions: [String] {
        let networks = ["127.0.0.0/8"] + excepted.filter { !$0.contains(":") }
        let addresses = ["ip daddr { \(networks.joined(separator: ", ")) }", "ip6 daddr ::1"]
        // The server's own connections must reach the upstreams.
        return (interface == nil ? ["meta skuid \(user)"] : []) + addresses
    }
}
