// Checks for each client tool on this machine that it uses the proxy and trusts it, with the variables of `rockpool env`.
import Foundation
import RockpoolCore
import RockpoolNetwork

extension Examination {
    /// A program, and its arguments to fetch a URL.
    private struct Trial: Sendable {
        var name: String
        var program: String
        var arguments: @Sendable (String) -> [String]
        /// The output that proves that our own response, a 404, arrived.
        var mark: String
    }

    private static let trials = [
        Trial(name: "curl", program: "curl", arguments: { ["-sS", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", $0] }, mark: "404"),
        Trial(name: "wget", program: "wget", arguments: { ["-S", "-T", "10", "-t", "1", "-O", "/dev/null", $0] }, mark: "404"),
        Trial(
            name: "Python requests", program: "python3",
            arguments: { ["-c", "import requests, sys; print(requests.get(sys.argv[1], timeout=10).status_code)", $0] }, mark: "404"),
        Trial(
            name: "Python urllib", program: "python3",
            arguments: {
                [
                    "-c",
                    "import sys, urllib.request as u\ntry: u.urlopen(sys.argv[1], timeout=10)\nexcept u.HTTPError as e: print(e.code)", $0,
                ]
            }, mark: "404"),
        Trial(name: "git", program: "git", arguments: { ["ls-remote", $0] }, mark: "not found"),
        Trial(
            name: "Node fetch", program: "node",
            arguments: { ["-e", "fetch(process.argv[1]).then(r => console.log(r.status), e => console.log(e.cause || e))", $0] },
            mark: "404"),
        Trial(
            name: "npm", program: "npm", arguments: { ["view", "doctor", "--registry", $0, "--fetch-retries=0", "--fetch-timeout=10000"] },
            mark: "E404"),
        Trial(
            name: "Ruby", program: "ruby",
            arguments: { ["-rnet/http", "-e", "puts Net::HTTP.get_response(URI(ARGV[0])).code", $0] }, mark: "404"),
        Trial(
            name: "PHP curl", program: "php",
            arguments: {
                ["-r", "$c = curl_init($argv[1]); curl_exec($c); echo curl_getinfo($c, CURLINFO_RESPONSE_CODE), curl_error($c);", $0]
            },
            mark: "404"),
        Trial(
            name: "Deno", program: "deno", arguments: { ["eval", "const r = await fetch(Deno.args[0]); console.log(r.status)", $0] },
            mark: "404"),
        Trial(
            name: "Bun", program: "bun", arguments: { ["-e", "console.log((await fetch(process.argv.at(-1))).status)", $0] }, mark: "404"),
    ]

    /// Each tool requests a status document, which the proxy itself answers: no upstream is needed.
    func tools(through doors: AdminClient.Doors) async -> [Finding] {
        let proxy = environment["https_proxy"] ?? environment["HTTPS_PROXY"]
        let shell: Finding =
            proxy?.hasSuffix(doors.proxy) == true
            ? .ok("this shell", detail: "goes through the proxy")
            : .warn("this shell", detail: "does not go through the proxy", advice: #"eval "$(rockpool env)", or rockpool run -- COMMAND"#)
        guard let place = HostAndPort(doors.proxy) else { return [shell] }
        var warnings: [String] = []
        let trust = TrustFiles(authority: files, environment: environment) { warnings.append($0) }
        let (bundle, wgetrc): (String?, String?)
        do {
            bundle = try trust.writeBundle()
            wgetrc = try bundle.map { try trust.writeWget(bundle: $0) }
        } catch {
            return [shell, .fail("clients", detail: "\(files.directory) cannot be written", advice: "make storage.state_dir writable")]
        }
        var client = ClientEnvironment(
            proxy: place, bundle: bundle, wgetrc: wgetrc, javaTrust: nil, direct: configuration.proxy.noProxy, javaOptions: nil)
        client.nodeAgent = try? trust.writeNodeAgent()
        client.phpDirectory = try? bundle.map { try trust.writePHP(bundle: $0) }
        let added = Dictionary(client.variables.map { ($0.name, $0.value) }) { $1 }
        let decrypted = configuration.upstreams.first { $0.intercept && $0.origin.scheme == .https }
        let origin = decrypted?.origin.url ?? "http://rockpool.invalid"
        var found = [shell] + warnings.map { .warn("clients", detail: $0, advice: "fix it, and run rockpool env again") }
        for trial in Self.trials {
            guard let tool = Tool(trial.program) else { continue }
            let outcome = tool.run(
                trial.arguments(origin + "/.well-known/rockpool/operations/doctor"), environment: added, within: 20)
            if configuration.proxy.auth != nil, outcome.output.contains("407") {
                found.append(.ok(trial.name, detail: "goes through the proxy, which wants a password"))
                continue
            }
            found.append(Self.finding(of: trial, outcome: outcome, isDecrypted: decrypted != nil))
        }
        if Tool("java") != nil {
            let hasTool = Tool("keytool") != nil
            found.append(
                hasTool
                    ? .ok("Java", detail: "rockpool env provides a trust store")
                    : .warn("Java", detail: "keytool is missing", advice: "install a JDK or a full runtime"))
        }
        return found + around()
    }

    private static func finding(of trial: Trial, outcome: Tool.Outcome, isDecrypted: Bool) -> Finding {
        if outcome.output.contains(trial.mark) {
            return .ok(trial.name, detail: isDecrypted ? "goes through the proxy and trusts it" : "goes through the proxy")
        }
        let lines = outcome.output.split(separator: "\n").map { String($0).inOneLine }
        let last = lines.last { $0.lowercased().contains("error") } ?? lines.last ?? "status \(outcome.status)"
        if last.contains("No module named") { return .ok(trial.name, detail: "not installed") }
        if trial.program == "node" {
            let advice = "Node from 14 on goes through the proxy with NODE_OPTIONS of rockpool env; use rockpool run"
            return .warn(trial.name, detail: last, advice: advice)
        }
        let isTrust = last.lowercased().contains("certificate")
        return .fail(
            trial.name, detail: last,
            advice: isTrust ? "it has its own list of authorities: use \(trial.name)'s option for one" : "see its manual on proxies")
    }
}
