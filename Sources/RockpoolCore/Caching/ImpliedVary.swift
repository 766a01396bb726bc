// What an answer may depend on although its Vary does not say so (security.md §3, *Unkeyed inputs*; RFC 9110 §12.5.5).
import HTTPTypes

/// Makes the Vary of a response that is to be stored whole.
///
/// An origin that works the value of one of these fields into its answer, and forgets to say so, would let whoever comes first choose
/// what everybody else is served. The same client, asking the same way, is answered from the store as before.
package enum ImpliedVary {
    /// The names in `head`'s Vary that `completed` may have added: what it adds is written in lower case.
    static func isAdded(_ name: HTTPField.Name) -> Bool { candidates.contains(name) && name.rawName == name.canonicalName }

    private static let candidates: [HTTPField.Name] = [.origin, .accept, .acceptEncoding]

    /// `head` with a Vary that also names
    /// - `Accept-Encoding`, where the content is coded: what one client decodes is nothing but noise to another;
    /// - `Origin`, where the request carries one: few other clients do, and what is allowed to one origin is not to another;
    /// - `Accept`, where it has no room for the type that came: then it was no ordinary preference, or no ordinary answer.
    package static func completed(_ head: ResponseHead, for request: RequestHead) -> ResponseHead {
        guard let named = Vary.names(head.fields) else { return head }
        var completed = head
        for name in candidates where !named.contains(name) && isSuspected(name, head, request) {
            completed.fields.append(HTTPField(name: .vary, value: name.canonicalName))
        }
        return completed
    }

    private static func isSuspected(_ name: HTTPField.Name, _ head: ResponseHead, _ request: RequestHead) -> Bool {
        if name == .acceptEncoding { return ContentCoding.isCoded(head.fields) }
        guard let value = request.fields.value(of: name.canonicalName) else { return false }
        return name == .origin || !MediaType.isAccepted(head.fields, by: value)
    }
}
