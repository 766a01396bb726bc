// The paths for which a permission of the upstream counts (docs/caching.md#pages-of-other-origins).

/// A group of paths with the same permissions.
package enum CrossOriginScope {
    /// Maximum length in bytes of a group's name; longer paths have no remembered permissions.
    private static let limit = 1024

    /// The name of the group: the declared resource, or the path with `*` in place of ids. Nil if the path is too long.
    package static func name(of request: RequestHead, entity: EntityMatch?) -> String? {
        if let resource = entity?.resource { return resource.label }
        let segments = request.target.prefix { $0 != "?" }.split(separator: "/", omittingEmptySubsequences: false)
        let name = segments.map { isID($0) ? "*" : $0 }.joined(separator: "/")
        return name.utf8.count <= limit ? name : nil
    }

    /// True for a segment that names one of many entities: a number, a UUID, a local id, or at least 16 letters and digits with a digit.
    private static func isID(_ segment: Substring) -> Bool {
        guard segment.utf8.contains(where: FieldByte.isDigit) else { return false }
        if segment.utf8.allSatisfy(FieldByte.isDigit) || LocalID(segment) != nil { return true }
        return segment.utf8.count >= 16
            && segment.utf8.allSatisfy { FieldByte.isDigit($0) || FieldByte.isLetter($0) || $0 == 0x2D || $0 == 0x5F }
    }
}
