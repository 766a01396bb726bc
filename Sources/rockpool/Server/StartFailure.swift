// Failures of a start, in words.
import RockpoolStore

/// Converts an error that prevents the start into a one-line message and an exit status.
enum StartFailure {
    static func naming<Result>(_ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch {
            throw named(error)
        }
    }

    private static func named(_ error: any Error) -> any Error {
        if case DataStoreError.locked = error { return CommandFailure(.busy, "\(error)") }
        if error is CacheInUse { return CommandFailure(.busy, "\(error)") }
        return error is ConfigurationError || error is CommandFailure ? error : CommandFailure(.failed, "\(error)")
    }
}
