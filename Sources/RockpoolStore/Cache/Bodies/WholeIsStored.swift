// A part whose whole is stored.

/// Thrown when a stored entry already contains every byte of a part.
package struct WholeIsStored: Error {}
