// Two writes of one note that meet: every kind, in every order, found in every way, with what must come of it (docs/outbox.md#merging).
import NotesAPI
import RockpoolCore
import Testing

/// What the two sides did to a note.
enum Deeds: String, CaseIterable { case disjointEdits, sameField, editDelete, deleteEdit, createCreate }

/// How the device came to write on top of what it had not seen.
enum Way: String, CaseIterable {
    /// Offline, before the other side.
    case offlineBefore
    /// Offline, after the other side.
    case offlineAfter
    /// Online and asynchronously, on its stale copy.
    case onStaleCopy
    /// Online and asynchronously, with the stale ETag in its own `If-Match`.
    case onStaleTag

    var isOnline: Bool { self == .onStaleCopy || self == .onStaleTag }
    /// Edits are PUTs of the whole, as it was read, or else PATCHes.
    var replaces: Bool { self == .offlineAfter || self == .onStaleCopy }
}

/// What stands in the end.
enum Ending { case mine, theirs, merged, both, asked }

/// One row of the table: a note, two writes and their end.
struct Meeting: CustomTestStringConvertible {
    let strategy: Resource.Conflict
    let deeds: Deeds
    let way: Way
    /// The number of the note that the API starts with.
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

    /// The table of docs/guide/conflicts.md, written out by hand.
    var ending: Ending {
        switch (strategy, deeds) {
        case (.serverWins, _): .theirs
        case (.clientWins, _): .mine
        // A deletion has no time of its own at this API.
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

    /// - Parameter seen: the note as the device has read it.
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

    // MARK: what must come of it

    /// The members of the note that its clients own, as each side means or has left them; nil where it is not.
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

    /// What the upstream has of the note in the end.
    var standing: JSONValue? {
        switch ending {
        case .theirs, .both, .asked: theirsAlone
        case .merged: Self.base.merging(theirsEdits).merging(mineEdits)
        // A PATCH names what it changes, and nothing else.
        case .mine where deeds == .disjointEdits && !way.replaces: Self.base.merging(theirsEdits).merging(mineEdits)
        case .mine: mineAlone
        }
    }

    /// The note that was made of mine beside theirs.
    var copy: JSONValue? { ending == .both ? mineAlone : nil }
    /// What was kept as the result.
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

    /// Whether the device reads its own write while a person is asked. Of a PATCH there is nothing to read where nothing is to be patched.
    var showsMine: Bool { ending == .asked && (deeds != .editDelete || way.replaces) }

    /// What the device reads in the end: what stands, and of what waits for a person its own write on top.
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
    /// Places where both sides made a change, and not the same.
    var clashes: Set<String> {
        switch deeds {
        case .sameField: ["/title"]
        // Without a base, what only one side has is open too: the upstream's own members that the resource does not name.
        case .createCreate: ["/title", "/createdAt", "/version"]
        default: []
        }
    }
}

extension JSONValue {
    /// A note without what its server alone writes; nil where it is none.
    var ownMembers: JSONValue? {
        guard var note = object else { return nil }
        for name in ["id", "createdAt", "updatedAt", "version"] { note[name] = nil }
        return .object(note)
    }
}

/// Whether two representations are the same; when not, both are shown as JSON.
func expectSame(_ shown: JSONValue?, _ meant: JSONValue?, _ place: String, _ location: SourceLocation = #_sourceLocation) {
    let isSame = shown == meant
    let texts = [shown, meant].map { $0.map { String(decoding: $0.serialized(), as: UTF8.self) } ?? "nothing" }
    #expect(isSame, "\(place): \(texts[0]), not \(texts[1])", sourceLocation: location)
}
