// The part of the `Link` field that pagination of a list needs (RFC 8288 §3).
import HTTPTypes

enum LinkField {
    /// Returns the reference of the first link with the relation `next`; nil when there is none.
    static func next(in fields: HTTPFields) -> String? {
        for value in fields[values: .link] {
            var rest = Substring(value)
            while let open = rest.firstIndex(of: "<"), let close = rest[open...].firstIndex(of: ">") {
                let reference = rest[rest.index(after: open)..<close]
                rest = rest[rest.index(after: close)...]
                let parameters = rest.prefix { $0 != "<" }
                if isNext(parameters) { return String(reference) }
                rest = rest.dropFirst(parameters.count)
            }
        }
        return nil
    }

    private static func isNext(_ parameters: Substring) -> Bool {
        parameters.split(whereSeparator: { $0 == ";" || $0 == "," }).contains { parameter in
            let halves = parameter.split(separator: "=", maxSplits: 1).map { FieldList.trimmed($0) }
            guard halves.count == 2, halves[0].lowercased() == "rel" else { return false }
            return halves[1].lowercased().split(whereSeparator: { $0 == " " || $0 == "\"" }).contains("next")
        }
    }
}
