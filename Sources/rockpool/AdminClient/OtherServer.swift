// A server that holds the port of the admin API and has another state directory than the one that was looked for.
import CCurl
import Foundation
import RockpoolCore

/// The answer of `/v1/status` at a TCP port of this machine.
struct OtherServer: Hashable, Sendable, CustomStringConvertible {
    var stateDir: String
    var configFile: String?
    var dashboard: String?

    var description: String {
        let file = configFile.map { " and the configuration \($0)" } ?? ""
        return "the server at \(dashboard ?? "its port") has the state directory \(stateDir)\(file); "
            + (isOpen ? "add --state-dir \(stateDir), or set ROCKPOOL_STATE_DIR" : "run the command with sudo and --state-dir \(stateDir)")
    }

    /// True if this user may enter its state directory.
    private var isOpen: Bool { access(stateDir, X_OK) == 0 || errno != EACCES }

    /// The command that looks at it, with the rights that this user lacks.
    var doctor: String { "\(isOpen ? "" : "sudo ")rockpool doctor --state-dir \(stateDir)" }

    /// For who would start one more: the command that declares an API instead, with the rights that its file needs.
    func invitation(for url: String?) -> String {
        var mayChange = isOpen
        if let configFile { mayChange = (try? ConfigurationEdit(file: configFile).checkWritable()) != nil }
        let command = "\(mayChange ? "" : "sudo ")rockpool add \(url ?? "https://api.example.com")"
        return "Rockpool runs here already\(configFile.map { ", with \($0)" } ?? ""); to give it one more API: \(command)"
    }

    /// Calls the port; nil if no server answers within a second, or if it is no Rockpool.
    init?(at listen: String) {
        guard var place = HostAndPort(listen), place.port != 0 else { return nil }
        if place.isWildcard { place.host = place.host == "::" ? "::1" : "127.0.0.1" }
        guard place.isLoopback, let handle = curl_easy_init() else { return nil }
        defer { curl_easy_cleanup(handle) }
        let exchange = AdminExchange(AdminTransfer(), on: handle)
        let steps: [() -> CURLcode] = [
            { rockpool_easy_set_string(handle, CURLOPT_PROXY, "") },
            { rockpool_easy_set_string(handle, CURLOPT_URL, "http://\(place)/v1/status") },
            { rockpool_easy_set_long(handle, CURLOPT_NOSIGNAL, 1) },
            { rockpool_easy_set_long(handle, CURLOPT_TIMEOUT_MS, 1000) },
            { exchange.perform(method: "GET") },
        ]
        struct Facts: Decodable {
            var stateDir: String
            var configFile: String?
            var dashboard: String?
        }
        guard steps.allSatisfy({ $0() == CURLE_OK }), exchange.status == 200,
            let facts = try? JSONDecoder().decode(Facts.self, from: exchange.body), !facts.stateDir.isEmpty
        else { return nil }
        (stateDir, configFile, dashboard) = (facts.stateDir, facts.configFile, facts.dashboard)
    }
}
