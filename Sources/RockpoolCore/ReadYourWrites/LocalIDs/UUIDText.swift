// Ids in the memory of two numbers, for tables with an entry for each waiting write.

/// A text that needs no allocation where it is a UUID or a local id, and is kept as it is otherwise.
package struct UUIDText: Hashable, Sendable {
    private enum Form: Hashable, Sendable {
        case uuid(UUIDBits)
        case local(LocalID)
        case other(String)
    }

    private let form: Form

    /// Keeps any text.
    package init(_ text: String) {
        form = UUIDBits(text.utf8).map { .uuid($0) } ?? LocalID(text).map { .local($0) } ?? .other(text)
    }

    /// The text.
    package var text: String {
        switch form {
        case .uuid(let bits): bits.text
        case .local(let id): id.text
        case .other(let text): text
        }
    }
}
