// Cache-Control: no added directive ever loosens another one (RFC 9111 §4.2.1).
import HTTPTypes
import RockpoolCore

extension FuzzTarget {
    /// Lines: two values.
    static func cacheControl(_ input: FuzzInput) throws(BrokenProperty) {
        let (first, second) = (
            HTTPField(line: input.bytes(0)[...], as: .cacheControl), HTTPField(line: input.bytes(1)[...], as: .cacheControl)
        )
        let (a, b, both) = (CacheControl([first]), CacheControl([second]), CacheControl([first, second]))
        try hold(both == CacheControl([first, second, first]), "to say it again says nothing new")
        try hold(both.noStore == (a.noStore || b.noStore), "no-store holds wherever it stands")
        try hold((both.noCache == .all) == (a.noCache == .all || b.noCache == .all), "no-cache holds wherever it stands")
        try hold((both.isPrivate == .all) == (a.isPrivate == .all || b.isPrivate == .all), "private holds wherever it stands")
        try hold(both.maxAge == least(a.maxAge, b.maxAge) && both.sMaxAge == least(a.sMaxAge, b.sMaxAge), "the least lifetime holds")
        try hold(both.minFresh == [a.minFresh, b.minFresh].compactMap(\.self).max(), "the greatest demand holds")
        try hold(!a.forbidsStale || both.forbidsStale || both.isPrivate == .all, "nothing allows what was forbidden")
        for span in [both.maxAge, both.sMaxAge, both.staleIfError, both.staleWhileRevalidate, both.minFresh].compactMap(\.self) {
            try hold(span >= .zero, "no span is negative")
        }
        let strict = CacheControl([HTTPField(name: .cacheControl, value: first.value + ", no-store, max-age=0")])
        try hold(strict.noStore && strict.maxAge == .zero, "what follows rubbish is still read")
        let request = CacheControl(request: HTTPFields([first]))
        try hold(request == a, "a request's directives are read as a response's")
    }

    private static func least(_ a: TimeSpan?, _ b: TimeSpan?) -> TimeSpan? { [a, b].compactMap(\.self).min() }
}

extension HTTPField {
    /// A field of that name with these bytes as its value.
    init(line: ArraySlice<UInt8>, as name: Name) { self.init(name: name, lenientValue: line) }
}

extension CacheControl {
    fileprivate init(_ fields: [HTTPField]) { self.init(HTTPFields(fields)) }
}
