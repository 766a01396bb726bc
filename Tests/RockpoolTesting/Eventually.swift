// Waiting for something to come true: the one place where a test lets time pass.

/// Something did not come true in its time.
package struct NeverCame: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
}

/// Asks `condition` again and again, in steps of at most `pace`, until it holds. Throws `NeverCame` when it did not within `limit`.
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

/// The same for a value that is nil until it is there.
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
