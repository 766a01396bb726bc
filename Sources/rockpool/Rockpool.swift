// The root command: its subcommands and exit status (docs/reference/cli.md#commands).
import ArgumentParser
import Foundation

@main
struct Rockpool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rockpool",
        abstract: "An offline cache proxy: reads from a cache, writes through an outbox, for any HTTP client.",
        version: Version.number,
        subcommands: [
            ServeCommand.self, InitCommand.self, LearnCommand.self, DemoCommand.self, StatusCommand.self, StatsCommand.self,
            TailCommand.self,
            StorageCleanupCommand.self,
            CacheCommand.self,
            OutboxCommand.self, ConflictsCommand.self, SyncCommand.self, EntitiesCommand.self, IdentitiesCommand.self, NetworkCommand.self,
            NotifyCommand.self,
            CACommand.self, ProxyPasswordCommand.self, TransparentCommand.self,
            EnvCommand.self,
            RunCommand.self, DoctorCommand.self, ConfigCommand.self, ReloadCommand.self, DashboardCommand.self, ServiceCommand.self,
            VersionCommand.self, BackupCommand.self, RestoreCommand.self,
        ])

    static func main() async {
        do {
            var command = try await asyncParseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            guard let ending = Ending(error) else { exit(withError: error) }
            for line in ending.lines { Display.error.print(line) }
            Foundation.exit(ending.status.rawValue)
        }
    }
}
