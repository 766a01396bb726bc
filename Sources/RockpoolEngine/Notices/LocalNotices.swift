// The seam to programs that show a notice on this machine.
package import RockpoolCore

/// Runs the commands of notices.
package protocol LocalNotices: Sendable {
    /// Runs a program without a shell, with `input` on its standard input.
    /// - Throws: the reason why it did not succeed, in words.
    func run(_ command: [String], input: [UInt8]) async throws
    /// Shows a notification on the desktop.
    /// - Throws: the reason why it cannot be shown.
    func show(_ notice: Notice) async throws
}

/// No programs, as in tests of the engine.
package struct NoLocalNotices: LocalNotices {
    package struct Unavailable: Error {}

    package init() {}

    package func run(_ command: [String], input: [UInt8]) async throws { throw Unavailable() }
    package func show(_ notice: Notice) async throws { throw Unavailable() }
}
