// Runs system programs for work that Rockpool delegates: certutil, keytool, update-ca-certificates.
import Foundation

/// A program found on the path.
struct Tool {
    let path: String

    /// Nil if no program of that name is found.
    init?(_ name: String, environment: [String: String] = ProcessInfo.processInfo.environment) {
        let places = (environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"]
        guard let place = places.first(where: { place in access("\(place)/\(name)", X_OK) == 0 }) else { return nil }
        path = "\(place)/\(name)"
    }

    /// The result of a run.
    struct Outcome {
        var status: Int32
        /// stdout and stderr.
        var output: String
    }

    /// Runs the program to its end without input and returns its output. `environment` is added to the process's own.
    func run(_ arguments: [String], environment: [String: String] = [:], within limit: Double = 60) -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        guard (try? process.run()) != nil else { return Outcome(status: 127, output: "\(path) cannot be started") }
        let timer = DispatchSource.makeTimerSource()
        timer.schedule(deadline: .now() + limit)
        timer.setEventHandler { process.terminate() }
        timer.resume()
        let output = (try? pipe.fileHandleForReading.readToEnd()) ?? nil
        process.waitUntilExit()
        timer.cancel()
        return Outcome(status: process.terminationStatus, output: String(decoding: output ?? Data(), as: UTF8.self))
    }

    /// Runs the program. Throws if it fails.
    func perform(_ arguments: [String]) throws(CommandFailure) {
        let outcome = run(arguments)
        guard outcome.status == 0 else {
            throw CommandFailure(.failed, "\(path) \(arguments.first ?? "") failed: \(outcome.output.inOneLine)")
        }
    }
}
