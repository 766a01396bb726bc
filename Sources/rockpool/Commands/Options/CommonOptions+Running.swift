// The running server that the options of a command lead to (docs/reference/cli.md#calling).
import Foundation
import RockpoolCore

extension CommonOptions {
    /// The server that answers; nil if none runs. Throws if one runs and cannot be asked.
    func running() async throws -> RunningServer? {
        let client = try client()
        let facts: ServerFactsReport
        do {
            facts = try await client.send(.get("/v1/status"), timeout: .seconds(5)).decoded()
        } catch let failure as AdminFailure where failure.isNotRunning {
            return nil
        }
        let configuration: Configuration
        do {
            let text = String(decoding: try await client.send(.get("/v1/configuration"), timeout: .seconds(5)).body, as: UTF8.self)
            configuration = try ConfigurationSources(environment: [:]).load(yaml: text, named: facts.configFile ?? "the server")
                .configuration
        } catch AdminFailure.refused {
            // An older server, which is run with the caller's configuration.
            configuration = try load().configuration
        }
        return RunningServer(client: client, facts: facts, configuration: configuration)
    }

    /// The configuration of the running server, or of the caller if none runs.
    func effective() async throws -> (configuration: Configuration, server: RunningServer?) {
        if let server = try await running() { return (server.configuration, server) }
        return (try load().configuration, nil)
    }
}
