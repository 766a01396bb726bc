// The answers that count as an item's representation (docs/outbox.md#reads, docs/outbox.md#effects).
import HTTPTypes
import Testing

@testable import RockpoolCore

private func json(_ text: String) throws -> JSONValue { try JSONValue.parse(Array(text.utf8)) }

@Suite struct WriteEffectTests {
    /// A delivered write with its answer; `becomes` is true if the answer is the item's representation.
    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let write: FoldedWrite
        let answer: String
        var base: String? = #"{"id":"17","t":"a","n":1}"#
        let becomes: Bool
    }

    static let patch = FoldedWrite.patch(3, "17", #"{"t":"b"}"#)
    static let put = FoldedWrite.put(3, "17", #"{"t":"b","n":1}"#)
    static let action = FoldedWrite.put(3, "17", "{}").action("publish")

    static let rows = [
        Row(testDescription: "PUT, its id", write: put, answer: #"{"id":"17","t":"B"}"#, becomes: true),
        Row(testDescription: "PUT, its id as a number", write: put, answer: #"{"id":17,"t":"B"}"#, becomes: true),
        Row(testDescription: "PUT, another's id", write: put, answer: #"{"id":"c1","t":"b","n":1}"#, becomes: false),
        Row(testDescription: "PUT, all that was written", write: put, answer: #"{"t":"B","n":1,"u":2}"#, becomes: true),
        Row(testDescription: "PUT, less than was written", write: put, answer: #"{"t":"B"}"#, becomes: false),
        Row(testDescription: "PUT, a report", write: put, answer: #"{"success":false}"#, becomes: false),
        Row(testDescription: "PUT, an error", write: put, answer: #"{"errors":[{"message":"m"}]}"#, becomes: false),
        Row(testDescription: "PUT, a list", write: put, answer: #"[{"id":"17"}]"#, becomes: false),
        Row(testDescription: "PUT, nothing known", write: put, answer: #"{"t":"B","n":1}"#, base: nil, becomes: true),
        Row(testDescription: "PATCH, its id", write: patch, answer: #"{"id":"17","t":"b","n":1}"#, becomes: true),
        Row(testDescription: "PATCH, only the change", write: patch, answer: #"{"t":"b"}"#, becomes: false),
        Row(testDescription: "PATCH, all that was known", write: patch, answer: #"{"t":"b","n":1}"#, becomes: true),
        Row(testDescription: "PATCH, a report", write: patch, answer: #"{"modified":1}"#, becomes: false),
        Row(testDescription: "an action, the item's id", write: action, answer: #"{"id":"17","t":"c"}"#, becomes: true),
        Row(testDescription: "an action, another's id", write: action, answer: #"{"id":"job-1"}"#, becomes: false),
        Row(testDescription: "an action, no id", write: action, answer: #"{"t":"a","n":1}"#, becomes: false),
    ]

    @Test(arguments: rows) func onlyTheItemsOwnRepresentationCounts(_ row: Row) throws {
        let shape = RepresentationShape(.notes)
        let answer = try json(row.answer)
        let base = try row.base.map { try json($0) }
        let effect = WriteEffect(row.write.delivered(answer), base: base, shape: shape)
        // Otherwise the effect is that of the request; that of an action is unknown to a copy from before it.
        let requested = WriteEffect(row.write, base: base, shape: shape)
        #expect(effect == (row.becomes ? .become(answer) : requested))
    }

    @Test func anAnswerOfAnOpenWriteIsNoEffect() throws {
        var write = Self.put
        write.answer = try json(#"{"id":"17","t":"B"}"#)
        #expect(try WriteEffect(write, shape: RepresentationShape(.notes)) == .replace(json(#"{"t":"b","n":1}"#)))
    }

    @Test func anEnvelopeIsOpened() throws {
        let answer = try json(#"{"data":{"note":{"id":"17","t":"B"}}}"#)
        let effect = WriteEffect(Self.put.delivered(answer), shape: RepresentationShape(.enveloped))
        #expect(try effect == .become(json(#"{"id":"17","t":"B"}"#)))
    }

    @Test(arguments: [
        (#"{"id":9,"t":"x"}"#, #"{"id":9,"t":"x"}"#), (#"{"ok":true}"#, #"{"t":"x"}"#), (#"{"t":"X"}"#, #"{"t":"X"}"#),
    ])
    func aCreateIsItsAnswerIfThatDescribesIt(_ answer: String, _ item: String) throws {
        let write = FoldedWrite.create(3, nil, #"{"t":"x"}"#).delivered(try json(answer))
        #expect(try WriteEffect(write, shape: RepresentationShape(.notes)) == .create(json(item)))
    }

    @Test func anAnswerToADeletionIsNoRepresentation() throws {
        let write = FoldedWrite.delete(3, "17").delivered(try json(#"{"id":"17","t":"a"}"#))
        #expect(WriteEffect(write, shape: RepresentationShape(.notes)) == .remove)
    }
}
