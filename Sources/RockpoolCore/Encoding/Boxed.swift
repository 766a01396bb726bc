// Values of many parts, copied by reference.

/// A value that lies in memory of its own: a copy of the box costs one reference count, whatever the value holds. It is copied when a box
/// that is not the only one is changed.
package struct Boxed<Value> {
    private final class Storage {
        var value: Value

        init(_ value: Value) { self.value = value }
    }

    private var storage: Storage

    package init(_ value: Value) { storage = Storage(value) }

    package var value: Value {
        _read { yield storage.value }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.value) }
            yield &storage.value
        }
    }
}

// @unchecked Sendable: what boxes share is never changed.
extension Boxed: @unchecked Sendable where Value: Sendable {}

extension Boxed: Equatable where Value: Equatable {
    package static func == (a: Boxed, b: Boxed) -> Bool { a.storage === b.storage || a.value == b.value }
}

extension Boxed: Hashable where Value: Hashable {
    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
