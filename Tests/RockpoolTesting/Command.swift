// Runs a program to its end.

/// The result of a program that has ended.
package struct Command: Sendable {
    /// The exit status; 128 + n when signal n ended the program.
    package let status: Int32
    package let output: String
    package let errors: String

    /// Runs a program. Throws when the program cannot be started or has not ended within `limit`; in the second case the program is killed.
    package static func run(
        _ executable: String, _ arguments: [String] = [], environment: [String: String] = [:], directory: String? = nil,
        input: String = "", within limit: Duration = .seconds(30)
    ) async throws -> Command {
        let child = try await ChildProcess(
            executable, arguments, environment: environment, directory: directory, input: Array(input.utf8))
        return Command(status: try await child.ending(within: limit).status, output: child.output, errors: child.errors)
    }

    /// Runs the product's own binary.
    package static func rockpool(
        _ arguments: [String], environment: [String: String] = [:], directory: String? = nil, within limit: Duration = .seconds(30)
    ) async throws -> Command {
        try await run(Binary.path, arguments, environment: environment, directory: directory, within: limit)
    }
}
