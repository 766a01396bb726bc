// A body that differs from its digests (RFC 9530).

/// Thrown when the bytes of a body do not match the digest of its origin or of the transfers it was joined from.
package struct UnprovenBody: Error {}
