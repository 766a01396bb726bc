// `rockpool run` (docs/reference/cli.md).
import ArgumentParser
import Foundation

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run one command with the variables of `rockpool env`.",
        discussion: .examples(
            "rockpool run -- curl http://api.example.com/v1/notes",
            after: "Everything after -- is the command. Its exit status is returned."))
    @OptionGroup var login: LoginOptions
    @OptionGroup var common: CommonOptions
    @Argument(parsing: .captureForPassthrough, help: "The command and its arguments, after --.")
    var command: [String] = []

    func run() async throws {
        if command.first == "--help" || command.first == "-h" { throw CleanExit.helpRequest(self) }
        let command = command.first == "--" ? Array(command.dropFirst()) : command
        guard let program = command.first else { throw ValidationError("no command given: rockpool run -- CMD…") }
        let environment = ProcessInfo.processInfo.environment
        for (name, value) in try await ClientEnvironment.current(common: common, login: login, environment: environment).variables
        where ClientEnvironment.isUnderstood(name, by: program) {
            setenv(name, value, 1)
        }
        // The command replaces this process, so that it receives the signals and owns the terminal and the exit status.
        var arguments: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        // The threads of the runtime block signals, and exec preserves the signal mask.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        execvp(program, &arguments)
        let code = errno
        Display.error.print("rockpool: \(program) cannot be run: \(String(cString: strerror(code)))".inOneLine)
        Foundation.exit(code == ENOENT ? 127 : 126)
    }
}
