// Whether the answer to a write describes the write's entity (docs/outbox.md#no-success).
import HTTPTypes

extension AnsweredWrite {
    /// True if the answer is a JSON object that has neither the entity's id nor the members that were written, so that it is delivered with a
    /// warning and never becomes the copy. An action may answer anything, and a declared rule of success explains every answer.
    package var isForeign: Bool {
        guard success == nil, outcome == .applied, let resource = entity?.resource, addressesEntity, let body, let answer = answerValue,
            [.post, .put, .patch].contains(request.method)
        else { return false }
        let type = JSONBodyType(request.fields[.contentType])
        guard type != .other, type != .jsonPatch else { return false }
        let shape = RepresentationShape(resource)
        let isItem = entity?.isItem == true
        let write = FoldedWrite(
            sequence: 1, method: request.method, isItem: isItem, id: isItem ? entity?.names { _, _ in nil }.id : nil, body: body)
        return !WriteEffect.describes(shape.unwrapped(answer), of: write, base: nil, shape: shape)
    }
}
