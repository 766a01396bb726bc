// `rockpool doctor`: what keeps clients from being served, a line a check, and what to do about it (contract §1).
import ArgumentParser
import RockpoolCore

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Check configuration, ports, disk, clock, trust, every client tool found and every upstream.",
        discussion: """
            Exits 1 when a check fails. Nothing is changed, but by --scrub, which takes bad bodies out of the cache, and never touches what \
            the outbox holds.
            """)
    @Flag(help: "Check every page, body and sum of both stores instead, with the server running or stopped.") var scrub = false
    @Flag(help: "With --scrub: find the same, and change nothing.") var dryRun = false
    @Option(
        help: ArgumentHelp("Copy what can be read of a damaged outbox into a new directory; the server must be stopped.", valueName: "dir"))
    var recover: String?
    @OptionGroup var options: ReadingOptions

    func validate() throws {
        if scrub, recover != nil { throw ValidationError("--scrub and --recover are two things: ask for one") }
        if dryRun, !scrub { throw ValidationError("--dry-run goes with --scrub; the other checks change nothing") }
    }

    func run() async throws {
        if scrub { return try await DoctorScrub.runScrub(options, dryRun: dryRun) }
        if let recover { return try await DoctorScrub.runRecover(options, into: recover) }
        let report = await examined()
        switch options.format {
        case .json: Display.output.write(String(decoding: try report.encoded, as: UTF8.self) + "\n")
        case .table: Display.output.print(report)
        }
        if report.failed > 0 { throw ExitCode(ExitStatus.failed.rawValue) }
    }

    private func examined() async -> DoctorReport {
        do {
            let loaded = try options.common.load()
            return await Examination(loaded.configuration).report()
        } catch let error as ConfigurationError {
            return DoctorReport(error.problems.map { .fail("configuration", "\($0)", "change it, then: rockpool config check") })
        } catch {
            return DoctorReport([.fail("configuration", "\(error)", "rockpool config check")])
        }
    }
}
