// Keeps a body's file while it is read.

/// Keeps a body's file on the disk while it is being read.
package final class BodyLease: Sendable {
    private let end: @Sendable () -> Void

    init(end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { end() }
}
