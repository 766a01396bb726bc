// Whether two descriptions of one thing contradict each other.

extension JSONValue {
    /// True if every member that both objects have is equal; for other values, if they are equal.
    package func agrees(with other: JSONValue) -> Bool {
        guard let own = object, let others = other.object else { return self == other }
        return own.names.allSatisfy { name in others[name].map { $0 == own[name] } ?? true }
    }
}
