// A body that ended early.

/// Thrown when the body ended before its announced length.
package struct IncompleteBody: Error {}
