// A terminal of a given width, by Python's pty module.
import RockpoolTesting

enum Terminal {
    private static let program = """
        import fcntl, os, pty, struct, sys, termios
        pid, terminal = pty.fork()
        if pid == 0:
            sys.stdin.readline()
            os.execvp(sys.argv[2], sys.argv[2:])
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, int(sys.argv[1]), 0, 0))
        os.write(terminal, b"\\n")
        output = b""
        while True:
            try: piece = os.read(terminal, 65536)
            except OSError: break
            if not piece: break
            output += piece
        status = os.waitpid(pid, 0)[1]
        sys.stdout.write(output.decode().replace("\\r\\n", "\\n").lstrip("\\n"))
        sys.exit(os.waitstatus_to_exitcode(status))
        """

    /// Runs a command of the program against a server, in a terminal.
    static func run(_ arguments: [String], on server: ServerProcess, columns: Int = 80) async throws -> Command {
        try await Command.run(
            "/usr/bin/env", ["python3", "-c", program, "\(columns)", Binary.path] + arguments + ["--config", server.configurationFile],
            environment: ["NO_COLOR": "1", "TERM": "xterm"])
    }
}
