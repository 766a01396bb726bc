// Clients that reach loopback addresses without a proxy, and apt, fetch from a name that is another address: in a network namespace, by
// `rockpool run` alone (docs/guide/clients.md#programs).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized) struct NamedHostTests {
    /// True if this machine lets the tests make a network namespace.
    private static let isPossible: Bool = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", "unshare -n -m sh -c 'ip link set lo up' >/dev/null 2>&1"]
        process.environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]
        try? process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// Each installed client fetches while the site answers, and once more after it has ended. `-` stands for a client that is missing.
    private static let script = #"""
        export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$1" GOCACHE="$1/go"
        cd "$1"
        ip link set lo up
        ip addr add 10.9.9.9/32 dev lo
        echo "10.9.9.9 pool.test" > hosts
        mount --bind hosts /etc/hosts
        cat > site.py <<'END'
        import http.server, ssl
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain("site.pem", "site.key")
        server = http.server.ThreadingHTTPServer(("10.9.9.9", 443), http.server.SimpleHTTPRequestHandler)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.serve_forever()
        END
        python3 site.py > /dev/null 2>&1 & site=$!
        "$2" serve --config rockpool.yaml > out 2> err & server=$!
        until grep -q ready out && [ -e state/ca/ca.pem ]; do sleep 0.1; kill -0 $server || exit 1; done
        cat > tide.go <<'END'
        package main
        import ("fmt"; "io"; "net/http")
        func main() {
            reply, failure := http.Get("https://pool.test/site/tide")
            if failure != nil { fmt.Println(failure); return }
            body, _ := io.ReadAll(reply.Body)
            fmt.Println(reply.StatusCode, string(body))
        }
        END
        ! which go > /dev/null || GO111MODULE=off go build -o tide tide.go
        fetch() {
            name=$1 tool=$2; shift 2
            if which "$tool" > /dev/null; then printf '%s: ' "$name"; timeout 60 "$binary" run --config rockpool.yaml -- "$@" 2>&1 | tr '\n' ' '; echo
            else echo "$name: -"; fi
        }
        binary=$2
        for state in online away; do
            fetch "go $state" go ./tide
            fetch "ruby $state" ruby ruby -rnet/http -e 'r = Net::HTTP.get_response(URI("https://pool.test/site/tide")); puts r.code, r.body'
            fetch "php $state" php php -r '$c = curl_init("https://pool.test/site/tide"); curl_exec($c);
                echo curl_getinfo($c, CURLINFO_RESPONSE_CODE), curl_error($c);'
            fetch "apt $state" apt-get apt-get -o Dir::Etc::sourcelist="$1/apt.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$1/lists" \
                -o Acquire::Retries=0 update
            kill $site 2> /dev/null
        done
        echo "cached: $("$2" cache ls --config rockpool.yaml --format json | grep -o 'https://pool.test/[^"]*' | sort -u | tr '\n' ' ')"
        kill $server
        wait $server && echo stopped
        """#

    @Test(.enabled(if: isPossible, "no network namespace here")) func theyGoThrough() async throws {
        let authority = try await TestAuthority()
        let certificate = try await authority.certificate("DNS:pool.test")
        let scratch = try Scratch()
        for suffix in ["key", "pem"] {
            try scratch.write(try Files.text(of: certificate + "." + suffix), to: "site." + suffix)
        }
        let document: JSONValue = [
            "proxy": ["listen": "127.0.0.1:7625"], "admin": ["listen": "127.0.0.1:7626"],
            "storage": [
                "cache_dir": .string(scratch.path + "/cache"), "state_dir": .string(scratch.path + "/state"), "min_free": "1 MB",
            ],
            "upstreams": [
                [
                    "name": "secure", "origin": "https://pool.test", "intercept": true, "tls": ["ca_file": .string(authority.file)],
                    "routes": [["match": "/**", "store": "always"]],
                ]
            ],
        ]
        try scratch.write(String(decoding: document.serialized(), as: UTF8.self), to: "rockpool.yaml")
        let package = "Package: tide\nVersion: 1\nArchitecture: all\nFilename: ./tide.deb\n"
        for (path, text) in [("site/tide", "low"), ("debian/Packages", package)] {
            let folder = (scratch.path + "/" + path as NSString).deletingLastPathComponent
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try scratch.write(text, to: path)
        }
        try FileManager.default.createDirectory(atPath: scratch.path + "/lists/partial", withIntermediateDirectories: true)
        try scratch.write("deb [trusted=yes] https://pool.test/debian ./\n", to: "apt.list")
        _ = chmod(scratch.path, 0o755)
        let run = try await Command.run(
            "/usr/bin/env", ["unshare", "-n", "-m", "bash", "-c", Self.script, "test", scratch.path, Binary.path], within: .seconds(150))
        let errors = (try? Files.text(of: scratch.path + "/err")) ?? ""
        for client in ["go", "ruby", "php"] {
            for state in ["online", "away"] {
                let line = run.output.split(separator: "\n").first { $0.hasPrefix("\(client) \(state): ") } ?? ""
                #expect(line.hasSuffix(": -") || line.contains("200") && line.contains("low"), "\(line) \(run) \(errors)")
            }
        }
        let isDebian = access("/usr/bin/apt-get", X_OK) == 0
        #expect(!isDebian || run.output.contains("https://pool.test/debian/"), "\(run) \(errors)")
        #expect(run.output.hasSuffix("stopped\n"), "\(run) \(errors)")
    }
}
