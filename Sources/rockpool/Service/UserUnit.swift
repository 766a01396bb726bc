// The unit of systemd's user manager (Config/rockpool-user.service is the one that packages install).
import Foundation

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
