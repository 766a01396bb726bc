// Runs another program as a child process, with its output in files so that no pipe can fill up. Foundation's `Process` is not used: with 1
// 354 or more open files it reads past the end of a C library buffer, and it leaks three file descriptors for every program it has run.
import Foundation
import Subprocess
import Synchronization
import SystemPackage

/// A running program.
package final class ChildProcess: Sendable {
    /// How a program ended.
    package enum Ending: Hashable, Sendable {
        case exit(Int32)
        case signal(Int32)

        /// The exit status in the shell's convention: 128 + n when signal n ended the program.
        package var status: Int32 {
            switch self {
            case .exit(let status): status
            case .signal(let number): 128 + number
            }
        }
    }

    /// The process id.
    package let pid: Int32
    private let name: String
    private let scratch: Scratch
    private let running: Task<Ending, any Error>
    private let ended: Ended

    /// Starts `executable` with `environment` added to the environment of this process, from which every proxy and Rockpool variable is
    /// removed. Throws when the program cannot be started.
    package init(
        _ executable: String, _ arguments: [String], environment: [String: String] = [:], directory: String? = nil, input: [UInt8] = []
    ) async throws {
        let (scratch, ended) = (try Scratch(), Ended())
        (self.scratch, self.ended) = (scratch, ended)
        name = executable
        try Files.write(input, to: scratch.path + "/in")
        let variables = Self.cleanEnvironment.merging(environment) { $1 }
        let configuration = Configuration(
            executable: .path(FilePath(executable)), arguments: Arguments(arguments),
            environment: .custom(Dictionary(uniqueKeysWithValues: variables.map { (Environment.Key(stringLiteral: $0), $1) })),
            workingDirectory: FilePath(directory ?? scratch.path))
        (pid, running) = try await Self.start(configuration, in: scratch.path) { ended.isSo.withLock { $0 = true } }
    }

    /// Throws when the program cannot be started.
    /// - Parameter directory: holds the files `in`, `out` and `err`.
    private static func start(
        _ configuration: Configuration, in directory: String, end: @escaping @Sendable () -> Void
    ) async throws -> (Int32, Task<Ending, any Error>) {
        let input = try FileDescriptor.open(directory + "/in", .readOnly, options: .closeOnExec)
        let (output, errors) = (try create(directory + "/out"), try create(directory + "/err"))
        let (ids, started) = AsyncStream.makeStream(of: Int32.self)
        let running = Task {
            defer { started.finish() }
            let result = try await Subprocess.run(
                configuration, input: .fileDescriptor(input, closeAfterSpawningProcess: true),
                output: .fileDescriptor(output, closeAfterSpawningProcess: true),
                error: .fileDescriptor(errors, closeAfterSpawningProcess: true)
            ) { started.yield($0.processIdentifier.value) }
            end()
            return Ending(result.terminationStatus)
        }
        for await id in ids { return (id, running) }
        _ = try await running.value
        throw NeverCame(description: "a process id")
    }

    private static func create(_ path: String) throws -> FileDescriptor {
        try FileDescriptor.open(path, .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: .ownerReadWrite)
    }

    /// The output on stdout so far.
    package var output: String { (try? Files.text(of: scratch.path + "/out")) ?? "" }
    /// The output on stderr so far.
    package var errors: String { (try? Files.text(of: scratch.path + "/err")) ?? "" }
    /// True until the program has ended.
    package var isRunning: Bool { ended.isSo.withLock { !$0 } }

    /// Sends a signal to the program, unless the program has ended.
    package func signal(_ number: Int32) { if isRunning { kill(pid, number) } }

    /// Waits until the program ends; kills it and throws `NeverCame` when it has not ended within `limit`.
    package func ending(within limit: Duration = .seconds(30)) async throws -> Ending {
        let limited = Task {
            try await Task.sleep(for: limit)
            signal(SIGKILL)
        }
        let ending = try await running.value
        limited.cancel()
        if case .success = await limited.result { throw NeverCame(description: "not within \(limit): the end of \(name)") }
        return ending
    }

    private static let cleanEnvironment = ProcessInfo.processInfo.environment.filter { name, _ in
        let name = name.lowercased()
        return !name.hasSuffix("_proxy") && !name.hasPrefix("rockpool_") && !name.hasPrefix("xdg_")
    }
}

/// Set once a program has ended.
private final class Ended: Sendable {
    let isSo = Mutex(false)
}

extension ChildProcess.Ending {
    fileprivate init(_ status: TerminationStatus) {
        switch status {
        case .exited(let code): self = .exit(code)
        case .signaled(let number): self = .signal(number)
        }
    }
}
