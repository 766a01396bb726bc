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

/// `~/.config/systemd/user/rockpool.service`.
struct UserUnit {
    let file: String
    private let systemctl: Tool
    private let program: String

    /// Throws if this machine has no systemd.
    init(environment: [String: String]) throws(CommandFailure) {
        guard let systemctl = Tool("systemctl", environment: environment) else {
            throw CommandFailure(.failed, "there is no systemctl on this machine; run it by: rockpool serve")
        }
        self.systemctl = systemctl
        file = Directories.userConfiguration(environment: environment) + "/systemd/user/rockpool.service"
        program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "/usr/bin/rockpool"
    }

    var isInstalled: Bool { access(file, F_OK) == 0 }

    /// Writes the unit and starts it, now and at each login. `arguments` are those of `serve`.
    func install(arguments: [String]) throws {
        // Nothing is written if the user has no manager that runs.
        try checkManager()
        try FileManager.default.createDirectory(
            at: URL(fileURLWithPath: file).deletingLastPathComponent(), withIntermediateDirectories: true)
        try Self.text(program: program, arguments: arguments).write(toFile: file, atomically: true, encoding: .utf8)
        try systemctl.perform(["--user", "daemon-reload"])
        try systemctl.perform(["--user", "enable", "rockpool.service"])
        try systemctl.perform(["--user", "restart", "rockpool.service"])
    }

    /// Checks that a manager of this user's services answers.
    func checkManager() throws(CommandFailure) {
        let outcome = systemctl.run(["--user", "show", "--property=Version"])
        guard outcome.status == 0 else {
            let why = outcome.output.split(whereSeparator: \.isNewline).first.map { " (\($0))" } ?? ""
            let advice = "log in as the user itself, not by su or sudo, or use the system's service: systemctl status rockpool"
            throw CommandFailure(.failed, "this user has no session of systemd\(why); \(advice)".inOneLine)
        }
    }

    /// Stops the service and removes the unit.
    func uninstall() throws {
        guard isInstalled else { throw CommandFailure(.failed, "\(file) does not exist: the service is not installed") }
        try checkManager()
        try systemctl.perform(["--user", "disable", "--now", "rockpool.service"])
        try FileManager.default.removeItem(atPath: file)
        try systemctl.perform(["--user", "daemon-reload"])
    }

    /// The text of the unit. Its settings are those of the packaged one.
    static func text(program: String, arguments: [String]) -> String {
        """
        # Written by `rockpool service install`; `rockpool service uninstall` removes it.
        [Unit]
        Description=Rockpool, an offline cache proxy
        Documentation=man:rockpool(1)

        [Service]
        Type=notify
        ExecStart=\(([program, "serve"] + arguments).map(quoted).joined(separator: " "))
        ExecReload=\(([program, "reload"] + arguments).map(quoted).joined(separator: " "))
        Restart=on-failure
        RestartSec=1
        RestartPreventExitStatus=64 78
        WatchdogSec=30
        TimeoutStopSec=30
        UMask=0077
        NoNewPrivileges=yes
        RestrictRealtime=yes
        SystemCallArchitectures=native

        [Install]
        WantedBy=default.target

        """
    }

    /// A word of `ExecStart`, quoted where systemd would read it otherwise (systemd.syntax(7)).
    private static func quoted(_ word: String) -> String {
        let escaped = word.replacing("%", with: "%%").replacing("$", with: "$$")
        let isPlain = escaped.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/._-:%$@+=".contains($0)) }
        return isPlain ? escaped : "\"" + escaped.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    /// Executes a program in place of this one, so that it owns the terminal and the exit status.
    static func replaceProcess(by name: String, _ arguments: [String]) throws(CommandFailure) {
        guard let tool = Tool(name) else { throw CommandFailure(.failed, "there is no \(name) on this machine") }
        var words: [UnsafeMutablePointer<CChar>?] = ([tool.path] + arguments).map { strdup($0) } + [nil]
        // The threads of the runtime block signals, and exec preserves the signal mask.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        execv(tool.path, &words)
        throw CommandFailure(.failed, "\(tool.path) cannot be run: \(String(cString: strerror(errno)))")
    }
}
