// Programs of the system that do what is not ours to do: certutil, keytool, update-ca-certificates.
import Foundation

/// A program found on the path.
struct Tool {
    let path: String

    /// Nil when there is none of that name.
    init?(_ name: String, environment: [String: String] = ProcessInfo.processInfo.environment) {
        let places = (environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"]
        guard let place = places.first(where: { place in access("\(place)/\(name)", X_OK) == 0 }) else { return nil }
        path = "\(place)/\(name)"
    }

    /// What a run gave.
    struct Outcome {
        var status: Int32
        /// stdout and stderr.
        var output: String
    }

    /// Runs it to its end without input; its output is held. `environment` is added to ours.
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

    /// The same, for what must succeed.
    func perform(_ arguments: [String]) throws(CommandFailure) {
        let outcome = run(arguments)
        guard outcome.status == 0 else {
            throw CommandFailure(.failed, "\(path) \(arguments.first ?? "") failed: \(outcome.output.inOneLine)")
        }
    }
}
