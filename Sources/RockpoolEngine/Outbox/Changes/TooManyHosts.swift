// The error at the limit of undeclared hosts (docs/reference/configuration.md#defaults, `defaults.queue_writes`).

/// Thrown for a write to a further undeclared host when the limit is reached.
struct TooManyHosts: Error, CustomStringConvertible {
    var description: String { "writes wait for \(OutboxNotifier.adoptedLimit) undeclared hosts already; declare this one" }
}
