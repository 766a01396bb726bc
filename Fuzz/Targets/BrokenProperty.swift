// What a fuzz target finds: an input for which something does not hold that always should.

/// A property that an input breaks.
package struct BrokenProperty: Error, CustomStringConvertible {
    /// What should have held, in words.
    package let description: String
}

/// Throws unless `condition` is true.
func hold(_ condition: Bool, _ property: @autoclosure () -> String) throws(BrokenProperty) {
    if !condition { throw BrokenProperty(description: property()) }
}

/// Whether two texts are the same bytes: Swift's own `==` is Unicode's canonical equivalence.
func areSame(_ a: String, _ b: String) -> Bool { a.utf8.elementsEqual(b.utf8) }
