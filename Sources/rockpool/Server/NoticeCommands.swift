// Programs that the server runs: those of `notify` (docs/guide/operating.md#alarms), and NetworkManager's for the kind of the connection.
import Dispatch
import Foundation
import RockpoolCore
import RockpoolEngine

/// Programs without a shell, with a time limit and a small environment.
struct NoticeCommands: LocalNotices {
    /// After this time a program and its children are killed.
    private static let limit = Duration.seconds(30)
    /// The directories that may hold `notify-send`.
    private static let directories = ["/usr/bin", "/usr/local/bin", "/bin"]
    /// Variables that a program gets; others may hold secrets.
    private static let passedOn = [
        "PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY",
        "WAYLAND_DISPLAY",
    ]

    func show(_ notice: Notice) async throws {
        guard let program = Self.directories.map({ $0 + "/notify-send" }).first(where: { access($0, X_OK) == 0 }) else {
            throw CommandFailure(.failed, "there is no notify-send; install libnotify-bin")
        }
        try await run([program, "--app-name=Rockpool", "--", notice.summary, notice.next], input: [])
    }

    func run(_ command: [String], input: [UInt8]) async throws {
        let program = command.first ?? ""
        let file = FileManager.default.temporaryDirectory.path
        // A file as input: a program that does not read it blocks nothing.
        var template = Array("\(file)/rockpool-notice-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        guard descriptor >= 0 else { throw CommandFailure(.failed, "no temporary file: \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        unlink(template)
        guard input.withUnsafeBytes({ write(descriptor, $0.baseAddress, $0.count) }) == input.count, lseek(descriptor, 0, SEEK_SET) == 0
        else { throw CommandFailure(.failed, "its input cannot be written: \(String(cString: strerror(errno)))") }
        let process = try Self.spawn(command, input: descriptor)
        let deadline = ContinuousClock.now + Self.limit
        var status: Int32 = 0
        while waitpid(process, &status, WNOHANG) == 0 {
            guard ContinuousClock.now < deadline, !Task.isCancelled else {
                kill(-process, SIGKILL)
                waitpid(process, &status, 0)
                throw CommandFailure(.failed, "\(program) was killed: it ran for longer than 30 s")
            }
            try? await Task.sleep(for: .milliseconds(20))
        }
        // The low bits hold the signal, the next ones the exit status.
        guard status != 0 else { return }
        let how = status & 0x7F == 0 ? "ended with status \(status >> 8 & 0xFF)" : "ended by signal \(status & 0x7F)"
        throw CommandFailure(.failed, "\(program) \(how)")
    }

    /// Starts a program in a process group of its own, with nothing on its standard output.
    private static func spawn(_ command: [String], input: Int32) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
        // None of the server's files and sockets; a number that is closed by then is no error.
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        for number in open.compactMap({ Int32($0) }) where number > STDERR_FILENO {
            posix_spawn_file_actions_addclose(&actions, number)
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigdefault(&attributes, &all)
        let environment = ProcessInfo.processInfo.environment
        var variables: [UnsafeMutablePointer<CChar>?] = passedOn.compactMap { name in environment[name].map { strdup("\(name)=\($0)") } }
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
        defer { for text in variables + arguments { free(text) } }
        variables.append(nil)
        arguments.append(nil)
        var process: pid_t = 0
        let failure = posix_spawn(&process, command[0], &actions, &attributes, arguments, variables)
        guard failure == 0 else {
            throw CommandFailure(.failed, "\(command[0]) cannot be started: \(String(cString: strerror(failure)))")
        }
        return process
    }
}

/// Queries NetworkManager, if it runs (docs/caching.md#budgets).
enum NetworkManager {
    private static let name = "org.freedesktop.NetworkManager"

    /// True if the connection is metered, or probably so; nil if that is not known.
    static func isMetered() async -> Bool? {
        guard let busctl = Tool("busctl") else { return nil }
        return await withCheckedContinuation { answer in
            DispatchQueue.global().async {
                let path = "/" + name.replacing(".", with: "/")
                let outcome = busctl.run(["--timeout=2", "get-property", name, path, name, "Metered"], within: 5)
                answer.resume(returning: outcome.status == 0 ? isMetered(property: outcome.output) : nil)
            }
        }
    }

    /// Reads the property `Metered`: `u 1` and `u 3` are yes and probably yes, `u 2` and `u 4` no and probably no, `u 0` unknown.
    static func isMetered(property: String) -> Bool? {
        switch property.split(whereSeparator: \.isWhitespace).last {
        case "1", "3": true
        case "2", "4": false
        default: nil
        }
    }
}
