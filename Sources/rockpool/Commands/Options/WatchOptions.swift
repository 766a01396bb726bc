// `--watch`: prints a report repeatedly, in place on a terminal, one after the other in a pipe.
import ArgumentParser

/// `--watch`, an option of the status commands.
struct WatchOptions: ParsableArguments {
    private static let pace = Duration.seconds(2)

    @Flag(name: .long, help: "Repeat every two seconds, until the server stops or Control-C is pressed.")
    var watch = false

    /// Prints the report once, or until a call fails.
    func looking(_ look: () async throws -> Void) async throws {
        let display = Display.output
        if watch, display.isTerminal { display.write("\u{1B}[2J") }
        while true {
            if watch, display.isTerminal { display.write("\u{1B}[H") }
            try await look()
            guard watch else { return }
            // Erase the remaining lines of a previous, longer report.
            if display.isTerminal { display.write("\u{1B}[J") }
            try await Task.sleep(for: Self.pace)
        }
    }
}
