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
            + "add --state-dir \(stateDir), or set ROCKPOOL_STATE_DIR"
    }

    /// For who would start one more: what an API is declared with instead.
    var greeting: String {
        "Rockpool runs here already\(configFile.map { ", with \($0)" } ?? ""); to give it one more API"
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
