// `rockpool outbox export`: queued writes as JSON lines, curl commands or an HTTP Archive (docs/reference/cli.md#outbox-export;
// docs/outbox.md#export).
import ArgumentParser
import Foundation
import RockpoolCore
import Synchronization

extension OutboxCommand {
    struct Export: AsyncParsableCommand {
        enum Form: String, CaseIterable, ExpressibleByArgument { case jsonl, curl, har }

        static let configuration = CommandConfiguration(
            abstract: "Export operations with their bodies; only open ones without --state. Credentials are never exported.",
            discussion: """
                EXAMPLES
                  rockpool outbox export --state dead,conflicted --output failed.jsonl
                  rockpool outbox export --format curl --with-secrets         # to send by hand
                  rockpool outbox export --format har --state all --output outbox.har
                """)
        @Option(name: .long, help: "jsonl for programs, curl for a shell, har for browser tools.") var format: Form = .jsonl
        @Option(name: .long, help: "A state, several separated by commas, or all.", completion: Completions.states) var state: String?
        @Option(name: .long, help: "Only this lane.") var lane: String?
        @Flag(name: .long, help: "Export URLs unchanged; otherwise secret query parameters are REDACTED.") var withSecrets = false
        @Option(name: .shortAndLong, help: "The file, readable by its owner only; by default stdout.", completion: .file())
        var output: String?
        @Flag(name: .long, help: "Replace an existing file.") var force = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            var call = AdminCall.get("/v1/operations/export", query: ["format": format.rawValue])
            call.query["state"] = state
            call.query["lane"] = lane
            call.query["secrets"] = withSecrets ? "true" : nil
            let file = try output.map { try NewFile($0, replacing: force) }
            let bytes = Mutex<Int64>(0)
            do {
                try await Waiting.on("exporting, \(ForPeople.bytes(bytes.withLock { $0 }))") { [call] in
                    let sink: @Sendable (UnsafeRawBufferPointer) throws -> Void = { piece in
                        if let file {
                            try file.write(piece)
                        } else if Display.output.isTerminal {
                            Display.output.write(String(decoding: piece, as: UTF8.self))
                        } else {
                            try FileHandle.standardOutput.write(piece, named: "stdout")
                        }
                        bytes.withLock { $0 += Int64(piece.count) }
                    }
                    _ = try await common.withStores(having: { access($0.stateDir + "/data.sqlite", F_OK) == 0 }) { client in
                        try await client.send(call, through: AdminTransfer(sink: sink))
                    }
                }
                try file?.finish()
            } catch {
                file?.discard()
                throw error
            }
            if let output { Display.error.print("exported \(ForPeople.bytes(bytes.withLock { $0 })) to \(output)".inOneLine) }
        }
    }
}
