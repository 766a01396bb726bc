// `--watch`: the same report again and again, in place on a terminal, one below the other in a pipe.
import ArgumentParser

/// `--watch`, of commands that say how it stands.
struct WatchOptions: ParsableArguments {
    private static let pace = Duration.seconds(2)

    @Flag(name: .long, help: "Look again every two seconds, until the server is gone or you press Control-C.")
    var watch = false

    /// Looks once, or until looking fails.
    func looking(_ look: () async throws -> Void) async throws {
        let display = Display.output
        if watch, display.isTerminal { display.write("\u{1B}[2J") }
        while true {
            if watch, display.isTerminal { display.write("\u{1B}[H") }
            try await look()
            guard watch else { return }
            // What a longer report has left below goes.
            if display.isTerminal { display.write("\u{1B}[J") }
            try await Task.sleep(for: Self.pace)
        }
    }
}
