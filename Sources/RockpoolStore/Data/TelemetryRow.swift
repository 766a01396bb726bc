// The rows of telemetry routes among those of the outbox (docs/outbox.md#telemetry).
import RockpoolCore

/// SQL for rows of telemetry writes, which their lane shows.
enum TelemetryRow {
    /// True for a telemetry write.
    static func condition(_ row: String) -> String { "substr(\(row).lane, length(\(row).upstream) + 1, 3) = ' # '" }

    /// The name of its queue (`Lane.telemetryQueue`).
    static func queue(_ row: String) -> String { "substr(\(row).lane, 1, length(\(row).lane) - \(Lane.numberLength + 1))" }
}
