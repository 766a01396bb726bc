// `rockpool doctor`: one line per check, with advice where one fails (docs/reference/cli.md#doctor).
import ArgumentParser
import RockpoolCore

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor", abstract: "Check configuration, ports, disk, clock, trust, installed client tools and every upstream.",
        discussion: """
            Exits 1 if a check fails, or a scrub finds damage. Nothing is changed, except by --scrub, which removes bad bodies from the \
            cache but changes nothing in the outbox.

            EXAMPLES
              rockpool doctor
              rockpool doctor --scrub --dry-run
            """)
    @Flag(help: "Check every page, body and sum of both stores instead; the server may be running or stopped.") var scrub = false
    @Flag(help: "With --scrub: only report, and change nothing.") var dryRun = false
    @Option(
        help: ArgumentHelp("Copy the readable part of a damaged outbox into a new directory; the server must be stopped.", valueName: "dir")
    )
    var recover: String?
    @OptionGroup var options: ReadingOptions

    func validate() throws {
        if scrub, recover != nil { throw ValidationError("--scrub and --recover cannot be combined") }
        if dryRun, !scrub { throw ValidationError("--dry-run needs --scrub; the other checks change nothing") }
    }

    func run() async throws {
        if scrub { return try await DoctorScrub.runScrub(options: options, dryRun: dryRun) }
        if let recover { return try await DoctorScrub.runRecover(options: options, into: recover) }
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
            let server: RunningServer?
            do { server = try await options.common.running() } catch AdminFailure.denied(let socket, let group) {
                // Whatever else would be looked at belongs to that server.
                let detail = "\(socket): this user may not call the server"
                return DoctorReport([.fail("server", detail: detail, advice: AdminFailure.advice(for: group))])
            } catch { server = nil }
            var examination = Examination(server?.configuration ?? loaded.configuration, client: try options.common.client())
            examination.file = loaded.file
            if let server {
                examination.server = server
                examination.files = try await server.authorityFiles(environment: examination.environment)
            }
            return await examination.report()
        } catch let error as ConfigurationError {
            return DoctorReport(
                error.problems.map { .fail("configuration", detail: "\($0)", advice: "change it, then: rockpool config check") })
        } catch {
            return DoctorReport([.fail("configuration", detail: "\(error)", advice: "rockpool config check")])
        }
    }
}
