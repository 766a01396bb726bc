// `rockpool outbox summary`: who fills the outbox (docs/reference/cli.md#outbox-summary).
import ArgumentParser
import Glibc
import RockpoolCore

extension OutboxCommand {
    struct Summary: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show who fills the outbox: writes by upstream, client, method, path and state, the most bytes first.",
            discussion: .examples(
                "rockpool outbox summary", "rockpool outbox summary --state all --format json",
                after: """
                    Ids within paths are shown as *. Without --state it counts what waits and what failed. PROGRAM is the User-Agent of one \
                    of them. CLIENT is the identity made from a credential, as in rockpool identities ls; – is without one.
                    """))
        @OptionGroup var selection: OutboxSelection
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let call = AdminCall.get("/v1/operations", query: selection.query)
            let reply = try await options.common.withStores(having: { access($0.stateDir + "/data.sqlite", F_OK) == 0 }) {
                try await $0.pages(of: call)
            }
            let summary = OutboxSummary(of: try reply.decoded(as: OperationListReport.self).items)
            switch options.format {
            case .json: Display.output.print(String(decoding: try summary.encoded, as: UTF8.self))
            case .table: Display.output.print(summary)
            }
        }
    }
}
