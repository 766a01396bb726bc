// Says on a terminal that something takes longer than a second, and takes it back when it is over (contract §1).

enum Waiting {
    /// Runs a step; a line with the time it takes so far stands on stderr from the first second on. `what` is asked anew each second.
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
                // One that wraps could not be taken back.
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

    /// Waits for the line to be gone, so that nothing is printed into it.
    private static func end(_ ticker: Task<Void, any Error>) async {
        ticker.cancel()
        _ = await ticker.result
    }
}
