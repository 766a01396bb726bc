// A proxy that wants a name and a password, with curl (docs/guide/clients.md#passwords).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3)), .serialized) struct ProxyPasswordTests {
    /// A file of passwords, written by the command: ann with `sea:horse`.
    private struct Passwords {
        let scratch: Scratch

        init() throws { scratch = try Scratch() }

        var path: String { scratch.path + "/passwords" }
        var proxy: JSONValue { ["auth": ["file": .string(path)]] }

        func set(_ name: String, _ password: String) async throws {
            let run = try await Command.run(Binary.path, ["proxy-password", name, "--file", path], input: password + "\n")
            #expect(run.status == 0, "\(run)")
        }
    }

    private static let right = ["--proxy-user", "ann:sea:horse"]

    @Test func requestsNeedAPassword() async throws {
        let passwords = try Passwords()
        try await passwords.set("ann", "sea:horse")
        #expect(Files.mode(of: passwords.path) == 0o600)
        try await World.with(proxy: passwords.proxy) { world in
            let url = "http://127.0.0.1:\(world.api.port)/v1/notes/1"
            // Stored and hot after the second read: not without a password either.
            for _ in 0..<3 {
                let reply = try await Curl.send("GET", url, proxy: world.server.proxy, options: Self.right)
                #expect(reply.status == 200, "\(reply.text)")
            }
            for options in [[], ["--proxy-user", "ann:wrong"], ["--proxy-user", "bob:sea:horse"]] as [[String]] {
                let refused = try await Curl.send("GET", url, proxy: world.server.proxy, options: options)
                expectProblem(refused, "proxy-unauthorized", 407)
                #expect(refused["proxy-authenticate"] == #"Basic realm="rockpool", charset="UTF-8""#)
            }
            // A write with a body, and its reply to a wrong password.
            let write = try await Curl.send(
                "PATCH", url, proxy: world.server.proxy, fields: ["Content-Type: application/json"], body: #"{"title":"new"}"#,
                options: ["--proxy-user", "ann:no"])
            #expect(write.status == 407)
            await world.goOffline()
            let queued = try await Curl.send(
                "PATCH", url, proxy: world.server.proxy, fields: ["Content-Type: application/json"], body: #"{"title":"new"}"#,
                options: Self.right)
            #expect(queued.status == 202, "\(queued.text)")
            #expect(world.requests.allSatisfy { !$0.fields.contains { $0.name == .proxyAuthorization } })
            #expect(world.arrivals("PATCH", "/v1/notes/1") == 0)
            // Gateways have clients that know of no proxy.
            try await #expect(world.send("GET", "/v1/notes/1").status == 200)
            let secret = Base64.encode(Array("ann:sea:horse".utf8))
            for file in Files.everything(in: world.server.stateDirectory) + Files.everything(in: world.server.cacheDirectory) {
                let text = String(decoding: (try? Files.bytes(of: file)) ?? [], as: UTF8.self)
                #expect(!text.contains("sea:horse") && !text.contains(secret), "\(file)")
            }
            #expect(!world.server.errors.contains("sea:horse") && !world.server.output.contains("sea:horse"))
        }
    }

    @Test(arguments: [true, false]) func tunnelsNeedAPassword(isDecrypted: Bool) async throws {
        let passwords = try Passwords()
        try await passwords.set("ann", "sea:horse")
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate())
        let server = try await ServerProcess.start(
            ServerSettings(
                upstream: site.port,
                [
                    "origin": .string("https://localhost:\(site.port)"), "intercept": .bool(isDecrypted),
                    "tls": ["ca_file": .string(authority.file)],
                ], proxy: passwords.proxy))
        let trust = isDecrypted ? server.stateDirectory + "/ca/ca.pem" : authority.file
        let url = "https://localhost:\(site.port)/tide.json"
        let common = ["--proxy", "http://" + server.proxy, "--cacert", trust, "--suppress-connect-headers"]
        for _ in 0..<2 {
            let reply = try await Curl.send("GET", url, options: common + Self.right)
            #expect(reply.status == 200 && reply.text.contains("low"), "\(reply.exit) \(reply.text) \(server.errors)")
        }
        try await #expect(Curl.send("GET", url, options: common).exit == 56)
        try await #expect(Curl.send("GET", url, options: common + ["--proxy-user", "ann:wrong"]).exit == 56)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        try await site.stop()
    }

    /// TLS to the proxy itself, which other machines must use.
    @Test func theProxySpeaksTLS() async throws {
        let passwords = try Passwords()
        try await passwords.set("ann", "sea:horse")
        let authority = try await TestAuthority()
        let site = try await SecureSite(certificate: authority.certificate())
        let server = try await ServerProcess.start(
            ServerSettings(
                upstream: site.port,
                [
                    "origin": .string("https://localhost:\(site.port)"), "intercept": true, "tls": ["ca_file": .string(authority.file)],
                ], proxy: passwords.proxy))
        let ours = server.stateDirectory + "/ca/ca.pem"
        let common = ["--proxy", "https://" + server.proxy, "--proxy-cacert", ours, "--cacert", ours, "--suppress-connect-headers"]
        for url in ["https://localhost:\(site.port)/tide.json", "http://rockpool.local/"] {
            let reply = try await Curl.send("GET", url, options: common + Self.right)
            #expect(reply.status == 200, "\(url) \(reply.exit) \(reply.text) \(server.errors)")
        }
        try await #expect(Curl.send("GET", "http://rockpool.local/", options: common).status == 407)
        try await #expect(server.stop() == .exit(0), "\(server.errors)")
        try await site.stop()
    }

    @Test func socksNeedsAPassword() async throws {
        let passwords = try Passwords()
        try await passwords.set("ann", "sea:horse")
        let socks = "127.0.0.1:\(FreePort.next())"
        try await World.with(proxy: passwords.proxy.merging(["socks": .string(socks)])) { world in
            let url = "http://127.0.0.1:\(world.api.port)/v1/notes/1"
            let send = { (user: [String]) in try await Curl.send("GET", url, options: ["--socks5-hostname", socks] + user) }
            try await #expect(send(Self.right).status == 200)
            try await #expect(send(Self.right).status == 200)
            try await #expect(send([]).exit == 97)
            try await #expect(send(["--proxy-user", "ann:wrong"]).exit == 97)
            #expect(world.requests.count <= 2)
        }
    }

    @Test func wrongPasswordsAreLimited() async throws {
        let passwords = try Passwords()
        try await passwords.set("ann", "sea:horse")
        try await passwords.set("bob", "kelp")
        try await World.with(proxy: passwords.proxy) { world in
            let url = "http://127.0.0.1:\(world.api.port)/v1/notes/1"
            let send = { (user: String) in try await Curl.send("GET", url, proxy: world.server.proxy, options: ["--proxy-user", user]) }
            try await #expect(send("bob:kelp").status == 200)
            var statuses: [Int] = []
            for number in 0..<12 { try await statuses.append(send("ann:wrong\(number)").status) }
            #expect(statuses == Array(repeating: 407, count: 10) + [429, 429])
            let limited = try await send("ann:sea:horse")
            expectProblem(limited, "too-many-attempts", 429)
            #expect(limited["retry-after"].flatMap { Int($0) }.map { (1...60).contains($0) } == true)
            // Others of this machine, and passwords that were right before, are not limited.
            try await #expect(send("bob:kelp").status == 200)
        }
    }

    /// Names that the file has and names that it does not have are answered alike, whatever was tried before.
    @Test func theLimitDoesNotListNames() async throws {
        let passwords = try Passwords()
        try await passwords.set("ann", "sea:horse")
        try await World.with(proxy: passwords.proxy) { world in
            let send = { (user: String) in
                try await Curl.send("GET", "http://rockpool.local/", proxy: world.server.proxy, options: ["--proxy-user", user]).status
            }
            for number in 0..<12 { try await #expect(send("guess\(number):x") == 407) }
            for name in ["ann", "zoe"] {
                var statuses: [Int] = []
                for number in 0..<12 { try await statuses.append(send("\(name):wrong\(number)")) }
                #expect(statuses == Array(repeating: 407, count: 10) + [429, 429], "\(name)")
            }
        }
    }

    @Test func aChangedFileAppliesAtOnce() async throws {
        let passwords = try Passwords()
        try await passwords.set("ann", "sea:horse")
        try await World.with(proxy: passwords.proxy) { world in
            let url = "http://127.0.0.1:\(world.api.port)/v1/notes/1"
            let send = { (user: String) in
                try await Curl.send("GET", url, proxy: world.server.proxy, options: ["--proxy-user", user]).status
            }
            try await #expect(send("ann:sea:horse") == 200)
            let changed = try await Command.run(
                Binary.path, ["proxy-password", "ann", "--config", world.server.configurationFile], input: "urchin\n")
            #expect(changed.status == 0, "\(changed)")
            try await #expect(send("ann:sea:horse") == 407)
            try await #expect(send("ann:urchin") == 200)
            let removed = try await world.server.command("proxy-password", "ann", "--remove")
            #expect(removed.status == 0, "\(removed)")
            try await #expect(send("ann:urchin") == 407)
            let again = try await world.server.command("proxy-password", "ann", "--remove")
            #expect(again.status == 1)
        }
    }

    @Test func aFileThatCannotBeUsedStopsTheStart() async throws {
        let passwords = try Passwords()
        try Files.write(Array("ann:sea:horse\n".utf8), to: passwords.path)
        let server = try ServerProcess.prepare(ServerSettings(upstream: 1, proxy: passwords.proxy))
        let check = try await server.command("config", "check")
        #expect(check.status == 78 && check.errors.contains("proxy.auth.file"), "\(check)")
        #expect(!check.errors.contains("horse"))
        await #expect(throws: (any Error).self) { try await server.start() }
    }

    @Test func theEnvironmentNamesTheUser() async throws {
        let passwords = try Passwords()
        try await passwords.set("ann", "sea:horse")
        try await World.with(proxy: passwords.proxy) { world in
            let file = try passwords.scratch.write("sea:horse\n", to: "secret")
            try Files.setMode(0o600, of: file)
            let url = "http://127.0.0.1:\(world.api.port)/v1/notes/1"
            let run = { (options: [String], program: [String]) in
                try await Command.run(
                    Binary.path, ["run", "--config", world.server.configurationFile] + options + ["--"] + program,
                    environment: ["HOME": passwords.scratch.path, "PATH": ProcessInfo.processInfo.environment["PATH"] ?? ""])
            }
            let login = ["--proxy-user", "ann", "--proxy-password-file", file]
            let fetch = "fetch(process.argv[1]).then(r => r.json()).then(n => console.log(n.title))"
            for program in [["curl", "-sS", url], ["python3", "-c", Self.urllib, url], ["node", "-e", fetch, url]] {
                let known = try await run(login, program)
                #expect(known.status == 0 && known.output.contains("first"), "\(program) \(known)")
            }
            let unknown = try await run([], ["curl", "-sS", url])
            #expect(unknown.output.contains("proxy-unauthorized") && unknown.errors.contains("--proxy-user"), "\(unknown)")
        }
    }

    private static let urllib = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"

    /// Another machine: a network namespace of its own.
    private static let script = """
        set -e
        export PATH=/usr/sbin:/usr/bin:/sbin:/bin
        cd "$1"
        ip link set lo up
        unshare -n sleep 600 & other=$!
        until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
        ip link add near type veth peer name far netns $other
        ip addr add 10.9.8.1/24 dev near; ip link set near up
        nsenter -t $other -n sh -c "ip addr add 10.9.8.2/24 dev far; ip link set far up; ip link set lo up"
        mkdir site; echo low > site/tide
        python3 -m http.server --bind 10.9.8.1 --directory site 8088 > /dev/null 2>&1 & api=$!
        "$2" serve --config rockpool.yaml > out 2> err & server=$!
        until grep -q ready out && [ -e state/ca/ca.pem ]; do sleep 0.1; kill -0 $server; done
        get() { nsenter -t $other -n curl -sS -m 20 --proxy-cacert state/ca/ca.pem -D - "$@" http://10.9.8.1:8088/tide || echo "exit $?"; }
        echo "== plain"; get -x http://10.9.8.1:7625 --proxy-user ann:sea:horse
        echo "== tls"; get -x https://10.9.8.1:7625 --proxy-user ann:sea:horse
        echo "== nobody"; get -x https://10.9.8.1:7625
        kill $api $other
        kill $server; wait $server && echo "== stopped"
        """

    @Test(.enabled(if: getuid() == 0, "needs root for a network namespace")) func otherMachinesNeedTLS() async throws {
        let passwords = try Passwords()
        try await passwords.set("ann", "sea:horse")
        let scratch = passwords.scratch
        let document: JSONValue = [
            "proxy": passwords.proxy.merging(["listen": "10.9.8.1:7625", "allow": ["10.9.8.0/24"]]), "admin": ["listen": "127.0.0.1:7626"],
            "storage": [
                "cache_dir": .string(scratch.path + "/cache"), "state_dir": .string(scratch.path + "/state"), "min_free": "1 MB",
            ],
            "upstreams": [["name": "plain", "origin": "http://10.9.8.1:8088"]],
        ]
        try scratch.write(String(decoding: document.serialized(), as: UTF8.self), to: "rockpool.yaml")
        let run = try await Command.run(
            "/usr/bin/env", ["unshare", "-n", "-m", "bash", "-c", Self.script, "test", scratch.path, Binary.path], within: .seconds(90))
        let errors = (try? Files.text(of: scratch.path + "/err")) ?? ""
        let parts = run.output.split(separator: "== ").map(String.init)
        let part = { (name: String) in parts.first { $0.hasPrefix(name) } ?? "" }
        #expect(part("plain").contains("403") && part("plain").contains("tls-required"), "\(run) \(errors)")
        #expect(!part("plain").contains("Proxy-Authenticate"))
        #expect(part("tls").contains("200") && part("tls").contains("low"), "\(run) \(errors)")
        #expect(part("nobody").contains("407"), "\(run) \(errors)")
        #expect(part("stopped").hasPrefix("stopped"), "\(run) \(errors)")
    }
}
