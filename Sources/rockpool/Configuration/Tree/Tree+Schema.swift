// The parts of JSON Schema (draft 2020-12) used to describe the configuration.

extension Tree {
    static func schema(_ type: String, _ description: String? = nil) -> Tree {
        .map([Member("type", .text(type))] + (description.map { [Member("description", .text($0))] } ?? []))
    }

    static func schema(words: [String]) -> Tree { .map([Member("enum", .list(words.map(Tree.text)))]) }

    /// An object with arbitrary member names.
    static func schema(membersOf value: Tree) -> Tree { schema("object").adding("additionalProperties", value) }

    /// The value, or null.
    var orNull: Tree { .map([Member("anyOf", .list([self, .schema("null")]))]) }

    /// A list of the value, a single one, or null.
    var orList: Tree {
        .map([Member("anyOf", .list([.schema("array").adding("items", self), self, .schema("null")]))])
    }

    func adding(_ name: String, _ value: Tree) -> Tree {
        guard case .map(let members) = self else { return self }
        return .map(members + [Member(name, value)])
    }
}
