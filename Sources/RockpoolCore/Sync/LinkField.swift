// The part of the `Link` field that pagination of a list and descriptions of an API need (RFC 8288 §3).
import HTTPTypes

enum LinkField {
    /// Returns the reference of the first link with the relation `next`; nil when there is none.
    static func next(in fields: HTTPFields) -> String? { references("next", in: fields).first }

    /// Returns the references of the links with a relation, in their order.
    static func references(_ relation: String, in fields: HTTPFields) -> [String] {
        var found: [String] = []
        for value in fields[values: .link] {
            var rest = Substring(value)
            while let open = rest.firstIndex(of: "<"), let close = rest[open...].firstIndex(of: ">") {
                let reference = rest[rest.index(after: open)..<close]
                rest = rest[rest.index(after: close)...]
                let parameters = rest.prefix { $0 != "<" }
                if names(relation, in: parameters) { found.append(String(reference)) }
                rest = rest.dropFirst(parameters.count)
            }
        }
        return found
    }

    private static func names(_ relation: String, in parameters: Substring) -> Bool {
        parameters.split(whereSeparator: { $0 == ";" || $0 == "," }).contains { parameter in
            let halves = parameter.split(separator: "=", maxSplits: 1).map { FieldList.trimmed($0) }
            guard halves.count == 2, halves[0].lowercased() == "rel" else { return false }
            return halves[1].lowercased().split(whereSeparator: { $0 == " " || $0 == "\"" }).contains(Substring(relation))
        }
    }
}
