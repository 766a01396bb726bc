// One place of a three-way merge.

/// One place of a merge. A nil value means that the member is absent on that side.
package struct MergedField: Hashable, Sendable {
    package var pointer: JSONPointer
    package var base: JSONValue?
    package var mine: JSONValue?
    package var theirs: JSONValue?
    /// The merged value; also nil where a person has to decide.
    package var merged: JSONValue?
    /// True if both sides changed the place differently: then one side has lost a value, or a person decides.
    package var isConflicting: Bool

    package init(
        pointer: JSONPointer, base: JSONValue?, mine: JSONValue?, theirs: JSONValue?, merged: JSONValue?, isConflicting: Bool
    ) {
        self.pointer = pointer
        self.base = base
        self.mine = mine
        self.theirs = theirs
        self.merged = merged
        self.isConflicting = isConflicting
    }
}
