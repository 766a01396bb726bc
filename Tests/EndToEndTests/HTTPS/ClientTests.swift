// Common clients read an HTTPS API through the proxy, online and with the API offline, configured only by their environment.
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

/// True if the programs are installed; a test without its program is skipped.
private func has(_ programs: String...) -> Bool {
    programs.allSatisfy { program in
        (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
    }
}

@Suite(.timeLimit(.minutes(5)), .serialized) struct SecureClientTests {
    /// Runs the program with the site online and offline; both runs must succeed and print the same.
    private func readsTwice(
        _ expected: String, prepare: (SecureWorld, Scratch) async throws -> Void = { _, _ in },
        _ program: (SecureWorld, Scratch) -> [String]
    ) async throws {
        try await SecureWorld.with { world in
            let home = try Scratch()
            try await prepare(world, home)
            for state in ["online", "offline"] {
                let run = try await world.run(program(world, home), home: home)
                #expect(run.status == 0 && run.output.contains(expected), "\(state): \(run.status) \(run.output) \(run.errors)")
                if state == "online" { try await world.site.stop() }
            }
        }
    }

    @Test func curl() async throws {
        try await readsTwice("low") { world, _ in ["curl", "-sS", "--fail", world.site.url + "/tide.json"] }
    }

    @Test(.enabled(if: has("wget"), "wget is not installed")) func wget() async throws {
        try await readsTwice("low") { world, _ in ["wget", "-qO-", world.site.url + "/tide.json"] }
    }

    @Test(.enabled(if: has("python3"), "python3 is not installed")) func pythonsOwnLibrary() async throws {
        let script = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
        try await readsTwice("low") { world, _ in ["python3", "-c", script, world.site.url + "/tide.json"] }
    }

    @Test(.enabled(if: has("python3"), "python3 is not installed")) func pythonRequests() async throws {
        let isThere = try await Command.run("/usr/bin/env", ["python3", "-c", "import requests"])
        guard isThere.status == 0 else { return print("skipped: Python has no requests") }
        let script = "import requests, sys; print(requests.get(sys.argv[1], timeout=20).json()['tide'])"
        try await readsTwice("low") { world, _ in ["python3", "-c", script, world.site.url + "/tide.json"] }
    }

    @Test(.enabled(if: has("python3"), "python3 is not installed")) func pip() async throws {
        let wheel = """
            import sys, zipfile
            with zipfile.ZipFile(sys.argv[1], "w") as wheel:
                wheel.writestr("pearl.py", "")
                wheel.writestr("pearl-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: pearl\\nVersion: 1.0\\n")
                wheel.writestr("pearl-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
                wheel.writestr("pearl-1.0.dist-info/RECORD", "")
            """
        let name = "pearl-1.0-py3-none-any.whl"
        try await readsTwice(
            "pearl",
            prepare: { world, _ in
                try FileManager.default.createDirectory(atPath: world.site.root.path + "/simple/pearl", withIntermediateDirectories: true)
                try world.site.root.write(#"<a href="../../\#(name)">\#(name)</a>"#, to: "simple/pearl/index.html")
                _ = try await Command.run("/usr/bin/env", ["python3", "-c", wheel, world.site.root.path + "/" + name])
            }
        ) { world, home in
            [
                "python3", "-m", "pip", "download", "--isolated", "--no-deps", "--no-cache-dir", "--disable-pip-version-check",
                "--index-url",
                world.site.url + "/simple/", "--dest", home.path + "/\(UUID().uuidString)", "pearl",
            ]
        }
    }

    /// Node 20 ignores the proxy variables; its TLS trusts the file in `NODE_EXTRA_CA_CERTS`.
    @Test(.enabled(if: has("node"), "node is not installed")) func node() async throws {
        let script = """
            const http = require("http"), https = require("https");
            const proxy = new URL(process.env.https_proxy), target = new URL(process.argv[1]);
            const connect = http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: target.host });
            connect.on("connect", (reply, socket) => {
              https.get(target, { socket, agent: false }, (reply) => reply.pipe(process.stdout)).on("error", (e) => { console.error(e); process.exit(1); });
            });
            connect.end();
            """
        try await readsTwice("low") { world, _ in ["node", "-e", script, world.site.url + "/tide.json"] }
    }

    /// The preloaded agent sends a Node that reads no proxy variables through the proxy.
    @Test(
        .enabled(if: has("node"), "node is not installed"),
        arguments: [
            "require('https').get(process.argv[1], (reply) => reply.pipe(process.stdout))",
            "fetch(process.argv[1]).then((reply) => reply.text()).then(console.log)",
        ])
    func nodeByItself(_ script: String) async throws {
        try await readsTwice("low") { world, _ in ["node", "-e", script, world.site.url + "/tide.json"] }
    }

    @Test func git() async throws {
        try await readsTwice(
            "refs/heads/",
            prepare: { world, home in
                let environment = [
                    "HOME": home.path, "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
                    "GIT_COMMITTER_EMAIL": "a@b",
                ]
                let commands =
                    "git init -q w && git -C w commit -qm tide --allow-empty && git clone -q --bare w \(world.site.root.path)/pool.git"
                    + " && git -C \(world.site.root.path)/pool.git update-server-info"
                let made = try await Command.run("/bin/sh", ["-c", commands], environment: environment, directory: home.path)
                #expect(made.status == 0, "\(made.errors)")
            }
        ) { world, _ in ["git", "ls-remote", world.site.url + "/pool.git"] }
    }

    /// Java uses HTTP/2 to the proxy.
    @Test(.enabled(if: has("java", "keytool"), "Java is not installed")) func java() async throws {
        let program = """
            import java.net.URI;
            import java.net.http.*;
            public class Fetch {
                public static void main(String[] words) throws Exception {
                    HttpResponse<String> reply = HttpClient.newHttpClient()
                        .send(HttpRequest.newBuilder(URI.create(words[0])).build(), HttpResponse.BodyHandlers.ofString());
                    System.out.println(reply.version() + " " + reply.statusCode() + " " + reply.body());
                }
            }
            """
        try await readsTwice("HTTP_2 200 {\"tide\": \"low\"}", prepare: { _, home in try home.write(program, to: "Fetch.java") }) {
            world, home in
            ["java", home.path + "/Fetch.java", world.site.url + "/tide.json"]
        }
    }

    /// Trust is set up by `rockpool ca install`, the proxy by command line options, as a user would do it.
    @Test(.enabled(if: has("chromium", "certutil"), "chromium or certutil is not installed")) func chromium() async throws {
        try await readsTwice(
            "tide",
            prepare: { world, home in
                try FileManager.default.createDirectory(atPath: home.path + "/.pki/nssdb", withIntermediateDirectories: true)
                let made = try await Command.run(
                    "/usr/bin/certutil", ["-N", "-d", "sql:\(home.path)/.pki/nssdb", "--empty-password"])
                #expect(made.status == 0, "\(made.errors)")
                let install = try await Command.rockpool(
                    ["ca", "install", "--store", "nss", "--yes", "--config", world.server.configurationFile],
                    environment: ["HOME": home.path])
                #expect(install.status == 0, "\(install.errors)")
            }
        ) { world, home in
            [
                "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--user-data-dir=\(home.path)/profile",
                "--proxy-server=http://\(world.server.proxy)", "--proxy-bypass-list=<-loopback>", "--dump-dom",
                world.site.url + "/tide.json",
            ]
        }
    }
}
