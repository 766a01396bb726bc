// `rockpool fleet rejoin`: a node that its fleet refuses comes back (docs/reference/cli.md#fleet-rejoin).
import ArgumentParser
import Glibc
import Logging
import RockpoolCore
import RockpoolStore

extension FleetCommand {
    struct Rejoin: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rejoin", abstract: "Let a stopped node that its fleet refuses come back with the open writes that it has.",
            discussion: .examples(
                "rockpool fleet rejoin --state-dir state",
                after: "Its next start reads all of the fleet. What the fleet does not have by then comes back under the same ids."))
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let storage = try options.common.load().configuration.storage
            guard access(storage.stateDir + "/data.sqlite", F_OK) == 0 else {
                throw CommandFailure(.failed, "there is no outbox in \(storage.stateDir)".inOneLine)
            }
            SQLiteTemporaries.keep(in: storage)
            let logger = Logger(label: "rockpool", level: .error)
            let offer = try await StartFailure.naming {
                try await DataStore.rejoin(storage.stateDir, settings: storage, clock: WallClock.now, logger: logger)
            }
            let report = RejoinReport(offer: offer)
            switch options.format {
            case .json: Display.output.print(String(decoding: try report.encoded, as: UTF8.self))
            case .table:
                Display.output.print(report)
                Display.output.print("\nNext: start the server; then look at rockpool outbox ls --state uncertain")
            }
        }
    }
}
