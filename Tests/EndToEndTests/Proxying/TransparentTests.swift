// Redirected connections in a network namespace of their own: the client knows of no proxy (docs/guide/clients.md#transparent).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct TransparentTests {
    /// True if this machine lets the tests make a network namespace with packet rules.
    private static let isPossible: Bool = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = [
            "-c", "unshare -n sh -c 'ip link set lo up && nft add table inet rockpool && ip rule add fwmark 1 lookup 1' >/dev/null 2>&1",
        ]
        process.environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]
        try? process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// The server and an API on another address of the namespace; the client runs as another user, whose connections are led to the server
    /// by the rules that the command prints.
    private static let script = """
        set -e
        export PATH=/usr/sbin:/usr/bin:/sbin:/bin
        cd "$1"
        ip link set lo up
        ip addr add 10.9.9.9/32 dev lo
        "$2" transparent rules --config rockpool.yaml --user 0 $3 > rules
        nft -f rules
        if [ -n "$3" ]; then eval "$(sed -n 's/^#.*: *\\(ip .*\\)/\\1/p; s/^# *\\(ip .*\\)/\\1/p' rules)"; fi
        echo "10.9.9.9 pool.test" > hosts
        mount --bind hosts /etc/hosts
        mkdir site; echo low > site/tide
        python3 -m http.server --bind 10.9.9.9 --directory site 80 > /dev/null 2>&1 & api=$!
        openssl s_server -quiet -accept 10.9.9.9:443 -key site.key -cert site.pem -WWW > /dev/null 2>&1 & tls=$!
        "$2" serve --config rockpool.yaml > out 2> err & server=$!
        until grep -q ready out && [ -e state/ca/ca.pem ]; do sleep 0.1; kill -0 $server; done
        cp state/ca/ca.pem ca-of-rockpool.pem; chmod 644 *.pem
        get() { setpriv --reuid 65534 --clear-groups curl -sS -m 20 -D - "$@" || echo "exit $?"; }
        echo "== http"; get http://pool.test/tide
        echo "== decrypted"; get --cacert ca-of-rockpool.pem https://pool.test/site/tide
        kill $api $tls
        echo "== offline"; get http://pool.test/tide
        echo "== direct"; get http://127.0.0.1:7628/tide
        kill $server; wait $server && echo "== stopped"
        """

    @Test(.enabled(if: isPossible, "no network namespace with nftables here"), arguments: ["", "--tproxy"])
    func redirectedConnectionsAreServed(option: String) async throws {
        let authority = try await TestAuthority()
        let certificate = try await authority.certificate("DNS:pool.test")
        let scratch = try Scratch()
        for suffix in ["key", "pem"] {
            try scratch.write(try Files.text(of: certificate + "." + suffix), to: "site." + suffix)
        }
        let document: JSONValue = [
            "proxy": ["listen": "127.0.0.1:7625", "transparent": "127.0.0.1:7628"], "admin": ["listen": "127.0.0.1:7626"],
            "storage": [
                "cache_dir": .string(scratch.path + "/cache"), "state_dir": .string(scratch.path + "/state"), "min_free": "1 MB",
            ],
            "upstreams": [
                ["name": "plain", "origin": "http://pool.test"],
                ["name": "secure", "origin": "https://pool.test", "intercept": true, "tls": ["ca_file": .string(authority.file)]],
            ],
        ]
        try scratch.write(String(decoding: document.serialized(), as: UTF8.self), to: "rockpool.yaml")
        _ = chmod(scratch.path, 0o755)
        let run = try await Command.run(
            "/usr/bin/env", ["unshare", "-n", "-m", "bash", "-c", Self.script, "test", scratch.path, Binary.path, option],
            within: .seconds(90))
        let errors = (try? Files.text(of: scratch.path + "/err")) ?? ""
        let parts = run.output.split(separator: "== ").map(String.init)
        let part = { (name: String) in parts.first { $0.hasPrefix(name) } ?? "" }
        #expect(part("http").contains("200") && part("http").contains("low") && part("http").contains("Via:"), "\(run) \(errors)")
        #expect(part("decrypted").contains("low") && part("decrypted").lowercased().contains("cache-status"), "\(run) \(errors)")
        #expect(part("offline").contains("low") && part("offline").contains("hit"), "\(run) \(errors)")
        #expect(part("direct").contains("exit 5"), "\(run) \(errors)")
        #expect(part("stopped").hasPrefix("stopped"), "\(run) \(errors)")
    }

    @Test func theRulesAreOfThePortAndTheUser() async throws {
        let server = try ServerProcess.prepare(ServerSettings(upstream: 1, proxy: ["transparent": "127.0.0.1:7628"]))
        let rules = try await server.command("transparent", "rules", "--user", "1234", "--ports", "80")
        #expect(
            rules.status == 0 && rules.output.contains("meta skuid 1234 accept")
                && rules.output.contains("tcp dport { 80 } redirect to :7628"))
        let others = try await server.command("transparent", "rules", "--interface", "eth1")
        #expect(others.output.contains("iifname \"eth1\"") && others.output.contains("hook prerouting") && !others.output.contains("skuid"))
        // The syntax, where nft is installed and may be run.
        let tproxy = try await server.command("transparent", "rules", "--tproxy", "--user", "1234")
        let led = try await server.command("transparent", "rules", "--tproxy", "--interface", "eth1")
        #expect(tproxy.output.contains("meta mark 7628") && tproxy.output.contains("tproxy ip to 127.0.0.1:7628"), "\(tproxy)")
        #expect(led.output.contains("iifname \"eth1\"") && led.output.contains("ip rule add fwmark 7628"), "\(led)")
        for text in [rules.output, others.output, tproxy.output, led.output] where getuid() == 0 && access("/usr/sbin/nft", X_OK) == 0 {
            let check = try await Command.run("/usr/bin/env", ["unshare", "-n", "/usr/sbin/nft", "-c", "-f", "-"], input: text)
            #expect(check.status == 0, "\(text) \(check.errors)")
        }
        let unset = try await ServerProcess.prepare(ServerSettings(upstream: 1)).command("transparent", "rules")
        #expect(unset.status == 78, "\(unset)")
    }
}
