// The parts of JSON Schema (draft 2020-12) used to describe the configuration.

extension ConfigDocument {
    static func schema(_ type: String, description: String? = nil) -> ConfigDocument {
        .map([Member("type", .text(type))] + (description.map { [Member("description", .text($0))] } ?? []))
    }

    static func schema(words: [String]) -> ConfigDocument { .map([Member("enum", .list(words.map(ConfigDocument.text)))]) }

    /// An object with arbitrary member names.
    static func schema(membersOf value: ConfigDocument) -> ConfigDocument { schema("object").adding("additionalProperties", value: value) }

    /// The value, or null.
    var orNull: ConfigDocument { .map([Member("anyOf", .list([self, .schema("null")]))]) }

    /// The value, another one, or null.
    func orNull(or other: ConfigDocument) -> ConfigDocument { .map([Member("anyOf", .list([self, other, .schema("null")]))]) }

    /// A list of the value, a single one, or null.
    var orList: ConfigDocument { orList(or: nil) }

    /// A list of the value, a single one, another value, or null.
    func orList(or other: ConfigDocument?) -> ConfigDocument {
        let list: ConfigDocument = .schema("array").adding("items", value: self)
        let choices: [ConfigDocument] = [list, self] + (other.map { [$0] } ?? []) + [.schema("null")]
        return .map([Member("anyOf", .list(choices))])
    }

    func adding(_ name: String, value: ConfigDocument) -> ConfigDocument {
        guard case .map(let members) = self else { return self }
        return .map(members + [Member(name, value)])
    }
}
