// `rockpool outbox migrate`: the outbox of a stopped server into the database of a fleet, and back (docs/reference/cli.md#outbox-migrate).
import ArgumentParser
import Glibc
import Logging
import RockpoolCore
import RockpoolStore

extension OutboxCommand {
    struct Migrate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Move the outbox of a stopped server into the database of a fleet, or back.",
            discussion: .examples(
                "rockpool outbox migrate --to postgresql://rockpool@db1/rockpool", "rockpool outbox migrate --to sqlite",
                after: "Nothing is sent meanwhile. After an interruption it may run again: nothing is lost or doubled."))
        @Option(name: .long, help: "The database's address, without a password; postgresql for that of the configuration; or sqlite.")
        var to: String
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let configuration = try options.common.load().configuration
            let storage = configuration.storage
            guard access(storage.stateDir + "/data.sqlite", F_OK) == 0 else {
                throw CommandFailure(.failed, "there is no outbox in \(storage.stateDir)".inOneLine)
            }
            let target = try target(configuration.outbox)
            SQLiteTemporaries.keep(in: storage)
            let logger = Logger(label: "rockpool", level: .error)
            let move = to == "sqlite" ? DataStore.takeBack : DataStore.bring
            let census = try await StartFailure.naming {
                try await Waiting.on("moving the outbox") { try await move(storage.stateDir, target, storage, WallClock.now, logger) }
            }
            let report = MigrationReport(store: to == "sqlite" ? .sqlite : .postgresql, counts: census)
            switch options.format {
            case .json: Display.output.print(String(decoding: try report.encoded, as: UTF8.self))
            case .table: Display.output.print(report)
            }
            guard options.format == .table else { return }
            let store = report.store.rawValue
            let isSet = configuration.outbox.store == report.store && (to == store || to == configuration.outbox.url)
            let address = report.store == .postgresql ? ", and outbox.url to its address" : ""
            Display.output.print("\nNext: " + (isSet ? "" : "set outbox.store to \(store)\(address); then ") + "start the server")
        }

        /// How this node takes part in the fleet.
        private func target(_ configured: OutboxSettings) throws -> OutboxSettings {
            var outbox = configured
            outbox.store = .postgresql
            if to != "sqlite", to != "postgresql" {
                do throws(Invalid) { outbox.url = try ScalarFormat.databaseURL.parse(to) } catch {
                    throw CommandFailure(.usage, "--to: \(error.reason), postgresql or sqlite".inOneLine)
                }
                outbox.urlFile = nil
            }
            guard outbox.url != nil || outbox.urlFile != nil else {
                throw CommandFailure(.usage, "name the fleet's database in outbox.url or outbox.url_file until the outbox has moved")
            }
            return outbox
        }
    }
}
