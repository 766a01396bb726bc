// The result of a failed fuzz target: an input that violates a property.

/// A property that an input violates.
package struct BrokenProperty: Error, CustomStringConvertible {
    /// The violated property as a sentence.
    package let description: String
}

/// Throws unless `condition` is true.
func hold(_ condition: Bool, _ property: @autoclosure () -> String) throws(BrokenProperty) {
    if !condition { throw BrokenProperty(description: property()) }
}

/// Compares texts by bytes: Swift's own `==` uses Unicode's canonical equivalence.
func areSame(_ a: String, _ b: String) -> Bool { a.utf8.elementsEqual(b.utf8) }
