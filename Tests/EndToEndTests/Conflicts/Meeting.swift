// Two conflicting writes of one note: every kind, order and way of detection, with the expected result (docs/outbox.md#merging).
import NotesAPI
import RockpoolCore
import Testing

/// The changes of the two sides.
enum Deeds: String, CaseIterable { case disjointEdits, sameField, editDelete, deleteEdit, createCreate }

/// The situation in which the device wrote without having read the other change.
enum Way: String, CaseIterable {
    /// Offline, before the other side's write.
    case offlineBefore
    /// Offline, after the other side's write.
    case offlineAfter
    /// Online and asynchronously, based on a stale copy.
    case onStaleCopy
    /// Online and asynchronously, with the stale ETag in the client's `If-Match`.
    case onStaleTag

    var isOnline: Bool { self == .onStaleCopy || self == .onStaleTag }
    /// True if edits are PUTs of the complete note as read; false for PATCHes.
    var replaces: Bool { self == .offlineAfter || self == .onStaleCopy }
}

/// The version that remains in the end.
enum Ending { case mine, theirs, merged, both, asked }

/// One row of the table: a note, two writes and their result.
struct Meeting: CustomTestStringConvertible {
    let strategy: Resource.Conflict
    let deeds: Deeds
    let way: Way
    /// The number of the note in the initial state of the API.
    let number: Int

    var testDescription: String { "\(strategy.rawValue), \(deeds.rawValue), \(way.rawValue)" }
    var id: String { deeds == .createCreate ? "own-\(number)" : String(number) }
    var path: String { "/v1/notes/" + id }
    var kind: Conflict.Kind {
        switch deeds {
        case .disjointEdits, .sameField: .editEdit
        case .editDelete: .editDelete
        case .deleteEdit: .deleteEdit
        case .createCreate: .createCreate
        }
    }

    static func all(_ strategy: Resource.Conflict) -> [Meeting] {
        let rows = Deeds.allCases.flatMap { deeds in Way.allCases.map { (deeds, $0) } }
        return rows.enumerated().map { Meeting(strategy: strategy, deeds: $1.0, way: $1.1, number: $0 + 1) }
    }

    /// The table of docs/guide/conflicts.md, written by hand.
    var ending: Ending {
        switch (strategy, deeds) {
        case (.serverWins, _): .theirs
        case (.clientWins, _): .mine
        // A deletion has no timestamp at this API.
        case (.lastWriteWins, .editDelete): .asked
        case (.lastWriteWins, _): way == .offlineBefore ? .theirs : .mine
        case (.fieldMerge, .disjointEdits): .merged
        case (.keepBoth, .deleteEdit): .theirs
        case (.keepBoth, _): .both
        case (.fieldMerge, _), (.ask, _): .asked
        }
    }

    // MARK: the two writes

    static let base: JSONValue = ["title": "base", "body": "b", "status": "open", "tags": ["a"], "count": 1]
    private var mineEdits: JSONValue { ["title": "mine"] }
    private var theirsEdits: JSONValue { deeds == .sameField ? ["title": "theirs"] : ["status": "theirs"] }

    /// - Parameter seen: the note as read by the device.
    func mine(_ seen: JSONValue?) -> (method: String, body: JSONValue?, fields: [String]) {
        switch deeds {
        case .createCreate: ("PUT", created("mine"), ["If-None-Match: *"])
        case .deleteEdit: ("DELETE", nil, [])
        case _ where way.replaces: ("PUT", (seen ?? .null).merging(mineEdits), [])
        default: ("PATCH", mineEdits, [])
        }
    }

    var theirs: (method: String, body: JSONValue?, fields: [String]) {
        switch deeds {
        case .createCreate: ("PUT", created("theirs"), ["If-None-Match: *"])
        case .editDelete: ("DELETE", nil, [])
        default: ("PATCH", theirsEdits, [])
        }
    }

    private func created(_ title: String) -> JSONValue { Self.base.merging(["title": .string(title), "body": .string(path)]) }

    // MARK: the expected result

    /// The client-owned members of the note after each side's write alone; nil for a deleted note.
    private var mineAlone: JSONValue? {
        switch deeds {
        case .createCreate: created("mine")
        case .deleteEdit: nil
        default: Self.base.merging(mineEdits)
        }
    }

    private var theirsAlone: JSONValue? {
        switch deeds {
        case .createCreate: created("theirs")
        case .editDelete: nil
        default: Self.base.merging(theirsEdits)
        }
    }

    /// The final state of the note at the upstream.
    var standing: JSONValue? {
        switch ending {
        case .theirs, .both, .asked: theirsAlone
        case .merged: Self.base.merging(theirsEdits).merging(mineEdits)
        // A PATCH changes only the members that it names.
        case .mine where deeds == .disjointEdits && !way.replaces: Self.base.merging(theirsEdits).merging(mineEdits)
        case .mine: mineAlone
        }
    }

    /// The additional note created from mine beside theirs.
    var copy: JSONValue? { ending == .both ? mineAlone : nil }
    /// The recorded result.
    var result: JSONValue? {
        switch ending {
        case .both: mineAlone
        case .asked: deeds == .disjointEdits ? Self.base.merging(theirsEdits).merging(mineEdits) : nil
        default: standing
        }
    }
    var sides: (base: JSONValue?, mine: JSONValue?, theirs: JSONValue?) {
        (deeds == .createCreate ? nil : Self.base, mineAlone, theirsAlone)
    }

    /// True if the device reads its own write while a decision is pending. A PATCH of a deleted note has no result to read.
    var showsMine: Bool { ending == .asked && (deeds != .editDelete || way.replaces) }

    /// The final state read by the device: the upstream's state, with its own write folded in while a decision is pending.
    var shown: JSONValue? {
        guard showsMine else { return standing }
        return deeds == .disjointEdits && !way.replaces ? Self.base.merging(theirsEdits).merging(mineEdits) : mineAlone
    }

    var state: String { ending == .asked ? "conflicted" : ending == .theirs ? "superseded" : "delivered" }
    var reason: String? { ending == .asked ? kind.rawValue : ending == .theirs ? "yielded" : nil }
    var resolution: String? {
        switch ending {
        case .mine: "mine"
        case .theirs: "theirs"
        case .merged: "merged"
        case .both: "both"
        case .asked: nil
        }
    }
    /// Members that both sides changed differently.
    var clashes: Set<String> {
        switch deeds {
        case .sameField: ["/title"]
        // Without a base, members present on one side only are open too: the upstream's own members that the resource does not declare.
        case .createCreate: ["/title", "/createdAt", "/version"]
        default: []
        }
    }
}

extension JSONValue {
    /// The note without the members that only its server writes; nil when it is not a note.
    var ownMembers: JSONValue? {
        guard var note = object else { return nil }
        for name in ["id", "createdAt", "updatedAt", "version"] { note[name] = nil }
        return .object(note)
    }
}

/// Expects that two representations are equal; otherwise shows both as JSON.
func expectSame(_ shown: JSONValue?, _ meant: JSONValue?, _ place: String, _ location: SourceLocation = #_sourceLocation) {
    let isSame = shown == meant
    let texts = [shown, meant].map { $0.map { String(decoding: $0.serialized(), as: UTF8.self) } ?? "nothing" }
    #expect(isSame, "\(place): \(texts[0]), not \(texts[1])", sourceLocation: location)
}
