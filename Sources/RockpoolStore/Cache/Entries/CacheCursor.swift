// A position in a list of entries.
import FoundationEssentials

/// A position in a list, which stays valid when entries are added or removed.
package struct CacheCursor: Hashable, Sendable {
    /// The value by which the list is ordered: the URL, or a number.
    let place: String
    let id: Int64

    init(place: String, id: Int64) { (self.place, self.id) = (place, id) }

    /// The cursor as an opaque token for clients: letters, digits, `-` and `_` only.
    package var text: String {
        Data("\(id) \(place)".utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    /// Returns nil for a text that was not produced by `text`.
    package init?(text: String) {
        let standard = text.replacing("-", with: "+").replacing("_", with: "/")
        let padding = String(repeating: "=", count: (4 - standard.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: standard + padding), let plain = String(bytes: data, encoding: .utf8),
            let space = plain.firstIndex(of: " "), let id = Int64(plain[..<space])
        else { return nil }
        self.init(place: String(plain[plain.index(after: space)...]), id: id)
    }
}
