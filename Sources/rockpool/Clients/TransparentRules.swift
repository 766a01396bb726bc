// The packet rules that lead connections to `proxy.transparent`, redirected or by TPROXY (docs/guide/clients.md#transparent).
import RockpoolCore

/// The rules as a script for nft(8).
struct TransparentRules {
    let listen: HostAndPort
    let ports: [Int]
    /// The user whose connections are not led.
    let user: String
    /// The interface at which other machines' connections arrive; nil leads this machine's own.
    let interface: String?
    /// Leads connections by TPROXY: their addresses stay, and the listener takes those of other machines.
    let usesTPROXY: Bool
    /// Networks that are never connected to, so that leading to them has no use.
    let excepted: [String]

    /// The mark of packets that are routed to this machine, and the table of that route.
    private static let mark = 7628

    var text: String {
        """
        # The connections of \(subject) to the ports \(list) lead to Rockpool at \(listen).
        # Load: rockpool transparent rules \(options)| nft -f -      Remove: nft delete table inet rockpool
        \(usesTPROXY ? routes : "")table inet rockpool
        delete table inet rockpool
        table inet rockpool {
        \(chains.joined(separator: "\n"))
        }
        """
    }

    private var isIPv6: Bool { listen.host.contains(":") }
    private var options: String { (usesTPROXY ? "--tproxy " : "") + (interface.map { "--interface \($0) " } ?? "") }
    private var list: String { ports.map(String.init).joined(separator: ", ") }
    private var subject: String { interface.map { "other machines at \($0)" } ?? "this machine, except those of user \(user)," }
    private var match: String {
        // A listener at an IPv6 address may take redirected connections of both families.
        let family = isIPv6 ? (usesTPROXY ? "meta nfproto ipv6 " : "") : "meta nfproto ipv4 "
        return (interface.map { "iifname \"\($0)\" " } ?? "") + family + "tcp dport { \(list) } "
    }

    private var routes: String {
        """
        # Marked packets stay on this machine: ip \(family)rule add fwmark \(Self.mark) lookup \(Self.mark)
        #                                      ip \(family)route add local default dev lo table \(Self.mark)
        # The server needs CAP_NET_ADMIN, or its listener from a socket unit with Transparent=yes.

        """
    }
    private var family: String { isIPv6 ? "-6 " : "" }

    private var chains: [String] {
        let isAnyAddress = ["0.0.0.0", "::"].contains(listen.host)
        let proxy = "tproxy \(isIPv6 ? "ip6" : "ip") to \(isAnyAddress ? ":\(listen.port)" : listen.description)"
        guard usesTPROXY else {
            let hook = interface == nil ? "output priority -100" : "prerouting priority dstnat"
            return [
                chain(
                    interface == nil ? "output" : "prerouting", type: "nat hook \(hook)",
                    rules: exceptions + [match + "redirect to :\(listen.port)"])
            ]
        }
        guard interface == nil else {
            return [
                chain(
                    "prerouting", type: "filter hook prerouting priority mangle",
                    rules: exceptions + [match + "meta mark set \(Self.mark) \(proxy)"])
            ]
        }
        // The connections of this machine take the way of arriving ones after they are marked.
        return [
            chain("output", type: "route hook output priority mangle", rules: exceptions + [match + "meta mark set \(Self.mark)"]),
            chain("prerouting", type: "filter hook prerouting priority mangle", rules: ["meta mark \(Self.mark) " + match + proxy]),
        ]
    }

    private func chain(_ name: String, type: String, rules: [String]) -> String {
        (["    chain \(name) {", "        type \(type); policy accept;"] + rules.map { "        " + $0 } + ["    }"]).joined(
            separator: "\n")
    }

    private var exceptions: [String] {
        let networks = ["127.0.0.0/8"] + excepted.filter { !$0.contains(":") }
        let addresses = ["ip daddr { \(networks.joined(separator: ", ")) } accept", "ip6 daddr ::1 accept"]
        // The server's own connections must reach the upstreams.
        return (interface == nil ? ["meta skuid \(user) accept"] : []) + addresses
    }
}
