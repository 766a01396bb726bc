// An item as its client sees it: the cached representation with the client's own writes applied (docs/outbox.md#reads).

/// Read-your-writes for items. Computed at every read, never written into the cache.
package enum ItemFold {
    /// The folded response. `last` is the sequence of the last write folded in, for the ETag; `count` is the number of writes folded in,
    /// delivered ones included: the caller counts those still pending.
    package enum Outcome: Hashable, Sendable {
        /// No write changes the item: the cached copy is served as it is, or nothing is known.
        case unchanged
        /// The whole body.
        case present(JSONValue, last: Int64, count: Int)
        /// 404, pending-delete.
        case deleted(last: Int64, count: Int)
        /// The effect of a write cannot be computed: the known body, nil when there is none, to be served with `Rockpool-Dirty: 1`.
        case dirty(JSONValue?, last: Int64, count: Int)
    }

    /// Folds writes into the cached representation (whole body, with its envelope), nil when nothing is stored. `writes` are those of this
    /// item in order of acceptance: all that are open, and delivered ones until the cached copy was fetched after their delivery.
    package static func fold(_ base: JSONValue?, with writes: [FoldedWrite], resource: Resource) -> Outcome {
        let shape = RepresentationShape(resource)
        var item = ItemProjection(base.flatMap(shape.opened).map { .present($0) } ?? .unknown, shape: shape)
        for write in writes { item.apply(write) }
        guard item.count > 0 else { return .unchanged }
        switch item.state {
        case .present(let object):
            let body = shape.closed(object, in: base)
            return item.isDirty
                ? .dirty(body, last: item.last, count: item.count) : .present(body, last: item.last, count: item.count)
        case .absent where !item.isDirty: return .deleted(last: item.last, count: item.count)
        case .absent: return .dirty(nil, last: item.last, count: item.count)
        case .unknown: return .dirty(base, last: item.last, count: item.count)
        }
    }
}
