// What `rockpool learned` shows: each collection, why it is known, and what is missing to know more (docs/outbox.md#learning).

/// One line of the report.
package struct LearnedReport: Hashable, Sendable {
    /// How far learning has come.
    package enum State: String, CaseIterable, Sendable {
        /// It is used.
        case learned
        /// A list was read; its items are not known.
        case open
        /// It was used, and an answer has contradicted it.
        case withdrawn
        /// Its answers may not be stored.
        case unstored
    }

    package var state: State
    /// The path of the collection, with variables; that of the answer where nothing else is known.
    package var path: String
    /// nil unless it is learned.
    package var resource: Resource?
    /// What has shown it, or what has contradicted it.
    package var reason: String
    /// What is missing to know more, and what to do about it; nil if nothing is.
    package var missing: String?
}

extension ResourceLearner {
    /// The report: what is used, then what may be, then what is not.
    package var report: [LearnedReport] {
        let used = entries.map { resource, shapes in
            LearnedReport(
                state: .learned, path: resource.collection, resource: resource, reason: Self.reason(shapes),
                missing: shapes.contains(where: \.hasOtherPosts) ? shapes.first(where: \.hasOtherPosts)?.missing : Self.least(shapes))
        }
        let seen = open.map { path, reads in
            LearnedReport(
                state: .open, path: path, reason: reads.counted("list"),
                missing: "a read of one of its entries, or a create that the API answers")
        }
        let gone = withdrawn.map { path, withdrawal in
            LearnedReport(
                state: .withdrawn, path: path, reason: withdrawal.reason,
                missing: withdrawal.count < Self.withdrawalLimit ? nil : "nothing more is learned of it; declare it under resources")
        }
        // What is below a path of the report is kept with it.
        let unread = unstored.filter { path in !unstored.contains { path.hasPrefix($0.withoutSlash + "/") && path != $0 } }.map { path in
            let isAlone = !unstored.contains { $0.hasPrefix(path.withoutSlash + "/") && $0 != path }
            return LearnedReport(
                state: .unstored, path: path, reason: "the API says no-store",
                missing: "the consent to keep it, under routes: { match: \"\(isAlone ? path : path.withoutSlash + "/**")\", store: always }"
            )
        }
        return used + seen + gone + unread
    }

    private static func reason(_ shapes: [LearnedShape]) -> String {
        guard var all = shapes.first else { return "" }
        for shape in shapes.dropFirst() {
            all.lists += shape.lists
            all.items += shape.items
            all.creates += shape.creates
        }
        return all.reason
    }

    /// What the shape lacks of which most is known.
    private static func least(_ shapes: [LearnedShape]) -> String? {
        shapes.contains { $0.missing == nil } ? nil : shapes.max { ($0.creates, $0.items) < ($1.creates, $1.items) }?.missing
    }
}
