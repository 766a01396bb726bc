// `rockpool service`: the server as a service of the current user, run by systemd (docs/reference/cli.md#service).
import ArgumentParser
import Foundation
import RockpoolCore

struct ServiceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "service", abstract: "Install, show and remove the server as a service of the current user.",
        discussion: .examples(
            "rockpool service install",
            "rockpool service logs --follow",
            after: "The service of the system is a unit of the package: sudo systemctl enable --now rockpool"),
        subcommands: [Install.self, Status.self, Logs.self, Uninstall.self])

    struct Install: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Install the unit, start the service, and start it at each login.",
            discussion: .examples(
                "rockpool service install",
                after: "A repeated run writes the unit again and restarts the service."))
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let file = try common.load().file
            let unit = try UserUnit(environment: ProcessInfo.processInfo.environment)
            // The file of the working directory is not found by a service, which runs elsewhere.
            let isDefault = file == nil || file == Directories.userFile(environment: ProcessInfo.processInfo.environment)
            var arguments = isDefault ? [] : ["--config", file.map { URL(fileURLWithPath: $0).path } ?? ""]
            if let stateDir = common.stateDir { arguments += ["--state-dir", URL(fileURLWithPath: stateDir).path] }
            if let socket = common.socket { arguments += ["--socket", URL(fileURLWithPath: socket).path] }
            if !unit.isInstalled, let other = OtherServer(at: try common.load().configuration.admin.listen) {
                throw CommandFailure(.failed, "nothing is installed. \(other.invitation(for: nil))".inOneLine)
            }
            try unit.install(arguments: arguments)
            Display.output.print("installed \(unit.file); rockpool runs now and at each login".inOneLine)
            Display.output.print("to run it without a login: loginctl enable-linger")
        }
    }

    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the state of the service, as systemd sees it.",
            discussion: .examples(
                "rockpool service status"))
        @OptionGroup var common: CommonOptions

        func run() async throws {
            try UserUnit(environment: ProcessInfo.processInfo.environment).checkManager()
            try UserUnit.replaceProcess(by: "systemctl", ["--user", "--no-pager", "status", "rockpool"])
        }
    }

    struct Logs: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the log of the service.",
            discussion: .examples(
                "rockpool service logs",
                "rockpool service logs --follow"))
        @Flag(name: [.short, .long], help: "Wait for new lines.") var follow = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            try UserUnit.replaceProcess(by: "journalctl", ["--user", "--no-pager", "-u", "rockpool"] + (follow ? ["-f"] : ["-n", "200"]))
        }
    }

    struct Uninstall: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Stop the service and remove its unit.",
            discussion: .examples(
                "rockpool service uninstall",
                after: "Configuration and stored data stay."))
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let unit = try UserUnit(environment: ProcessInfo.processInfo.environment)
            try unit.uninstall()
            Display.output.print("removed \(unit.file); configuration and data stay".inOneLine)
        }
    }
}
