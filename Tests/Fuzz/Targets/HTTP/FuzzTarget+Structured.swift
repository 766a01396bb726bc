// Structured fields: parsed within limits, and written so that any parser understands them (RFC 9651).
import HTTPTypes
import RawStructuredFieldValues
import RockpoolCore

extension FuzzTarget {
    /// Lines: a field's value, a query, a text to be written into a field.
    static func structured(_ input: FuzzInput) throws(BrokenProperty) {
        let value = input.text(0)
        try groups(HTTPField(line: input.bytes(0)[...], as: .init("Cache-Groups") ?? .vary))
        if let variance = SearchVariance(fieldValue: value) {
            try hold(SearchVariance(fieldValue: variance.fieldValue) == variance, "what a response varies by is read back")
            let query = variance.normalized(query: input.text(1))
            try hold(areSame(variance.normalized(query: query), query), "a normalised query is normalised")
        }
        _ = CacheControl.governing(in: [.init("CDN-Cache-Control") ?? .vary: value])
        let detail = input.text(2)
        try isItem(CacheStatus(hit: false, ttl: -1, fwd: .stale, fwdStatus: 200, stored: true, detail: detail).fieldValue)
        try isItem(ProxyStatus(error: .dnsError, nextHop: value).fieldValue)
    }

    private static func groups(_ field: HTTPField) throws(BrokenProperty) {
        let names = CacheGroups.names(in: HTTPFields([field]))
        try hold(names.count <= CacheGroups.maxNames && Set(names).count == names.count, "groups are few, and each is there once")
        try hold(names.allSatisfy { $0.utf8.count <= CacheGroups.maxNameLength }, "a group's name is short")
        try hold(names.allSatisfy { $0.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F } }, "a group's name is printable")
    }

    private static func isItem(_ value: String) throws(BrokenProperty) {
        var parser = StructuredFieldValueParser(Array(value.utf8))
        let members = try? parser.parseListFieldValue()
        try hold(members?.count == 1, "what we say is one member of a list: \(value)")
    }
}
