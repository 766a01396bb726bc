// A program run to its end.

/// What a program did.
package struct Command: Sendable {
    /// Its exit status; 128 + n when signal n ended it.
    package let status: Int32
    package let output: String
    package let errors: String

    /// Runs a program. Throws when it cannot be started, or has not ended within `limit`: then it is killed.
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
