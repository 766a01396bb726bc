// `rockpool tail`: the last requests and each new one (docs/reference/cli.md#tail, docs/reference/admin-api.md#requests).
import ArgumentParser
import Foundation
import RockpoolCore
import Synchronization

struct TailCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tail", abstract: "Show the last requests, how each was answered and why, and then each new one.",
        discussion: """
            Every criterion that is given must hold. A record says `×16` if it stands for 16 requests, because above a rate only some are \
            recorded. Neither bodies nor secrets are recorded.

            EXAMPLES
              rockpool tail --miss  # what the cache did not answer, and why
              rockpool tail --upstream notes --status 5xx
              rockpool tail --no-follow -n 1000 --format json     # one JSON object per line
              rockpool tail --har > requests.har                  # for browser tools
            """)
    @Option(name: .long, help: "Only this upstream.", completion: Completions.upstreams) var upstream: String?
    @Option(name: .long, help: "A status or a class such as 5xx; several with commas.") var status: String?
    @Option(name: .long, help: "A method; several with commas.") var method: String?
    @Option(
        name: .long,
        help: "hit, stale, revalidated, collapsed, miss, pass, queued, refused, failed, or the end of a queued write: delivered, dead, …")
    var verdict: String?
    @Flag(name: .long, help: "Only misses: as --verdict miss.") var miss = false
    @Option(name: .long, help: "Only URLs with this text.") var path: String?
    @Option(name: .long, help: "Only since then: a duration such as 10m, or a time.") var since: String?
    @Option(name: .shortAndLong, help: "How many of the last requests are shown first, at most 10000.") var number: Int?
    @Flag(name: .long, help: "Show only the last requests, and end.") var noFollow = false
    @Option(name: .long, help: "text for people, json for programs: one object per line.") var format: ExchangeFormat = .text
    @Flag(name: .long, help: "Write the recorded requests as an HTTP Archive, and end.") var har = false
    @OptionGroup var common: CommonOptions

    func validate() throws {
        if let number, !(0...10_000).contains(number) { throw ValidationError("-n is a number from 0 to 10000") }
        if miss, verdict != nil { throw ValidationError("--miss and --verdict exclude each other") }
    }

    func run() async throws {
        let client = try common.client()
        if har { return try await archive(client) }
        let printer = ExchangePrinter(format: format, on: .output)
        if noFollow {
            var call = call()
            call.query["limit"] = String(max(1, number ?? 10))
            if number != 0 { try printer.print(page: try await client.send(call).body) }
            return
        }
        var call = call()
        call.query["follow"] = "true"
        call.query["limit"] = String(number ?? 10)
        do {
            _ = try await client.send(call, through: AdminTransfer(sink: printer.take))
        } catch AdminFailure.broken(let why) {
            throw CommandFailure(.notRunning, "the server has stopped: \(why)")
        }
        throw CommandFailure(.notRunning, "the server has stopped")
    }

    private func call() -> AdminCall {
        var call = AdminCall.get("/v1/requests")
        call.query["upstream"] = upstream
        call.query["status"] = status
        call.query["method"] = method
        call.query["verdict"] = miss ? "miss" : verdict
        call.query["path"] = path
        call.query["since"] = since
        return call
    }

    private func archive(_ client: AdminClient) async throws {
        var call = call()
        call.query["format"] = "har"
        call.query["limit"] = number.map { String(max(1, $0)) }
        let sink: @Sendable (UnsafeRawBufferPointer) throws -> Void = { try FileHandle.standardOutput.write($0, named: "stdout") }
        _ = try await client.send(call, through: AdminTransfer(sink: sink))
    }
}

extension ExchangeFormat: ExpressibleByArgument {
    init?(argument: String) {
        // Other commands call the form for people a table.
        self.init(rawValue: argument == "table" ? "text" : argument)
    }
}
