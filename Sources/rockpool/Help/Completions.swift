// Completions of names that only the running server knows (docs/reference/cli.md#commands).
import ArgumentParser
import RockpoolCore

/// The candidates for an argument, which the completion script of a shell asks for.
enum Completions {
    /// The time after which a completion gives up, because the shell waits for it.
    private static let patience = TimeSpan.seconds(2)
    /// The most candidates.
    private static let most = "200"

    /// Ids of operations that have not ended.
    static var operations: CompletionKind { names(from: .get("/v1/operations", query: ["limit": most]), list: "items", member: "id") }
    /// Ids of conflicts, the newest first.
    static var conflicts: CompletionKind {
        names(from: .get("/v1/conflicts", query: ["limit": most, "state": "all"]), list: "items", member: "id")
    }
    /// Ids of identities.
    static var identities: CompletionKind { names(from: .get("/v1/identities", query: ["limit": most]), list: "items", member: "id") }
    /// Names of the declared upstreams.
    static var upstreams: CompletionKind { names(from: .get("/v1/status"), list: "upstreams", member: "name") }
    /// URLs that are stored.
    static var urls: CompletionKind { names(from: .get("/v1/cache", query: ["limit": most]), list: "items", member: "url") }
    /// The states of operations.
    static var states: CompletionKind { .list(OperationState.allCases.map(\.rawValue) + ["all"]) }

    /// Calls the server that the options on the command line name; without a server there are no candidates.
    private static func names(from call: AdminCall, list: String, member: String) -> CompletionKind {
        .custom { words, _, _ in
            let options = ["--config", "--socket", "--state-dir"].flatMap { name in
                words.lastIndex(of: name).flatMap { $0 + 1 < words.count ? [name, words[$0 + 1]] : nil } ?? []
            }
            guard let client = try? CommonOptions.parse(options).client(),
                let reply = try? await client.send(call, timeout: patience), let document = try? JSONValue.parse(Array(reply.body))
            else { return [] }
            return (document[list]?.array ?? []).compactMap { $0[member]?.string }
        }
    }
}
