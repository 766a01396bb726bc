// A process of another program, its output in files so that no pipe can fill up.
import Foundation
import Synchronization

/// A running program.
package final class ChildProcess: Sendable {
    /// How a program ended.
    package enum Ending: Hashable, Sendable {
        case exit(Int32)
        case signal(Int32)

        /// As a shell says it: 128 + n when signal n ended it.
        package var status: Int32 {
            switch self {
            case .exit(let status): status
            case .signal(let number): 128 + number
            }
        }
    }

    /// Its process id.
    package let pid: Int32
    private let process: Process
    private let scratch: Scratch

    /// Starts `executable`. `environment` is added to ours, from which every proxy and Rockpool variable is taken away.
    /// Throws when the program cannot be started.
    package init(
        _ executable: String, _ arguments: [String], environment: [String: String] = [:], directory: String? = nil, input: [UInt8] = []
    ) throws {
        let scratch = try Scratch()
        self.scratch = scratch
        let files = try ["out", "err"].map { FileHandle(forWritingAtPath: try scratch.write("", to: $0)) }
        try Files.write(input, to: scratch.path + "/in")
        let process = Process()
        self.process = process
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = arguments
        process.environment = Self.cleanEnvironment.merging(environment) { $1 }
        process.currentDirectoryURL = URL(fileURLWithPath: directory ?? scratch.path)
        process.standardInput = FileHandle(forReadingAtPath: scratch.path + "/in")
        process.standardOutput = files[0]
        process.standardError = files[1]
        pid = try Self.launching.withLock { _ in
            try process.run()
            return process.processIdentifier
        }
    }

    /// What it has written to stdout so far.
    package var output: String { (try? Files.text(of: scratch.path + "/out")) ?? "" }
    /// What it has written to stderr so far.
    package var errors: String { (try? Files.text(of: scratch.path + "/err")) ?? "" }
    /// Whether it has not ended.
    package var isRunning: Bool { process.isRunning }

    /// Sends it a signal, unless it has ended.
    package func signal(_ number: Int32) { if process.isRunning { kill(pid, number) } }

    /// Waits until it ends; kills it and throws `NeverCame` when it has not within `limit`.
    package func ending(within limit: Duration = .seconds(30)) async throws -> Ending {
        do {
            try await eventually("the end of \(process.executableURL?.lastPathComponent ?? "")", within: limit) { !process.isRunning }
        } catch {
            signal(SIGKILL)
            throw error
        }
        return process.terminationReason == .exit ? .exit(process.terminationStatus) : .signal(process.terminationStatus)
    }

    /// One at a time: Foundation's `Process.run` was seen to crash when several threads were in it.
    private static let launching = Mutex(())

    private static let cleanEnvironment = ProcessInfo.processInfo.environment.filter { name, _ in
        let name = name.lowercased()
        return !name.hasSuffix("_proxy") && !name.hasPrefix("rockpool_") && !name.hasPrefix("xdg_")
    }
}
