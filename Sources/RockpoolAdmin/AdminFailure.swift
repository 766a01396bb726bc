// Failures at the start of the admin server.

/// The reason why the admin API cannot be served.
package struct AdminFailure: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
}
