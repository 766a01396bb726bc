// Polling for a condition: the only place where a test lets time pass.

/// Thrown when a condition did not hold within its time limit.
package struct NeverCame: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// Evaluates `condition` repeatedly, in steps of at most `pace`, until it holds. Throws `NeverCame` when it did not hold within `limit`.
package func eventually(
    _ what: String, within limit: Duration = .seconds(20), pace: Duration = .milliseconds(20), _ condition: () async throws -> Bool
) async throws {
    let (clock, start) = (ContinuousClock(), ContinuousClock.now)
    var step = Duration.milliseconds(2)
    while try await !condition() {
        guard clock.now - start < limit else { throw NeverCame(description: "not within \(limit): \(what)") }
        try await Task.sleep(for: step, clock: clock)
        step = min(step * 2, pace)
    }
}

/// Polls in the same way for a value that is nil until it is available.
package func eventualValue<Value>(
    _ what: String, within limit: Duration = .seconds(20), _ value: () async throws -> Value?
) async throws -> Value {
    var found: Value?
    try await eventually(what, within: limit) {
        found = try await value()
        return found != nil
    }
    guard let found else { throw NeverCame(description: what) }
    return found
}
