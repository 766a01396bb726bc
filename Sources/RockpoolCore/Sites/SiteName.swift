// The name of a site, which is a file name at the collector (docs/fleet.md#sites).

/// Checks names of sites.
package enum SiteName {
    /// Bytes of a name at most.
    package static let limit = 64

    /// True for letters, digits, `-`, `_` and `.`, of which a dot is not the first: such a name leaves no directory.
    package static func isValid(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= limit && !text.hasPrefix(".")
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): true
                default: false
                }
            }
    }
}
