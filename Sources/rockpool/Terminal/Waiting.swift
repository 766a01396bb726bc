// Shows a line on a terminal while a task takes longer than a second, and removes it afterwards (docs/reference/cli.md#common-options).

enum Waiting {
    /// Runs a step; from the first second on, stderr shows a line with the elapsed time. `what` is evaluated every second.
    static func on<Value: Sendable>(
        _ what: @autoclosure @escaping @Sendable () -> String, display: Display = .error, clock: ContinuousClock = ContinuousClock(),
        step: () async throws -> Value
    ) async throws -> Value {
        guard display.isTerminal else { return try await step() }
        let ticker = Task {
            let start = clock.now
            defer { display.write("\r\u{1B}[K") }
            while true {
                try await clock.sleep(for: .seconds(1))
                let line = "\(what()) … \(ForPeople.seconds(Double(start.duration(to: clock.now).components.seconds)))"
                // A wrapped line could not be erased.
                display.write("\r\u{1B}[K\(line.prefix(max(1, (display.width ?? 80) - 1)))")
            }
        }
        do {
            let value = try await step()
            await end(ticker)
            return value
        } catch {
            await end(ticker)
            throw error
        }
    }

    /// Waits until the line is erased, so that later output does not mix with it.
    private static func end(_ ticker: Task<Void, any Error>) async {
        ticker.cancel()
        _ = await ticker.result
    }
}
