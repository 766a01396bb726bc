// Keys with mappings as values: required, optional, a list of them, or mappings by name.
import Yams

extension Key {
    /// A mapping that always exists.
    static func section<Inner>(_ name: String, field: Field<Model, Inner>, of section: Section<Inner>) -> Key {
        Key(
            name: name, schema: section.schema,
            read: { entry, model, path, reader in section.read(entry, into: &model[keyPath: field], at: path, with: &reader) },
            show: { section.show($0[keyPath: field]) })
    }

    /// A mapping that may be absent or `null`; if given, it starts from `blank`.
    static func optionalSection<Inner: Sendable>(
        _ name: String, field: Field<Model, Inner?>, of section: Section<Inner>, blank: Inner
    ) -> Key {
        Key(
            name: name, schema: section.schema.orNull,
            read: { entry, model, path, reader in
                guard let entry else { return }
                guard !entry.node.isNothing else {
                    model[keyPath: field] = nil
                    return
                }
                var inner = blank
                section.read(entry, into: &inner, at: path, with: &reader)
                model[keyPath: field] = inner
            },
            show: { $0[keyPath: field].map(section.show) ?? .null })
    }

    /// A mapping that may be absent or `null`, or one scalar in place of the mapping: the value of its key `field`.
    static func shorthand<Inner: Sendable, Value>(
        _ name: String, field mapping: Field<Model, Inner?>, for field: Field<Inner, Value>, as form: ScalarFormat<Value>,
        of section: Section<Inner>, blank: Inner
    ) -> Key {
        let nested = optionalSection(name, field: mapping, of: section, blank: blank)
        return Key(
            name: name, schema: form.schema.orNull(or: section.schema),
            read: { entry, model, path, reader in
                guard let entry, entry.node.scalar != nil, !entry.node.isNothing else {
                    return nested.read(entry, &model, path, &reader)
                }
                guard let value = reader.value(entry, as: form, at: path) else { return }
                var inner = blank
                inner[keyPath: field] = value
                model[keyPath: mapping] = inner
            },
            show: nested.show)
    }

    /// A list of mappings, each starting from `blank`.
    static func sections<Inner: Sendable>(
        _ name: String, field: Field<Model, [Inner]>, of section: Section<Inner>, blank: Inner
    ) -> Key {
        Key(
            name: name, schema: section.schema.orList,
            read: { entry, model, path, reader in
                guard let entry else { return }
                model[keyPath: field] = reader.items(of: entry, at: path).enumerated().map { index, item in
                    var inner = blank
                    section.read(item, into: &inner, at: path.item(index), with: &reader)
                    return inner
                }
            },
            show: { .list($0[keyPath: field].map(section.show)) })
    }

    /// A list of mappings, each starting from `blank`, or a word in place of the list, which is shown where there is no list.
    static func sections<Inner: Sendable, Word: CaseIterable & RawRepresentable<String> & Sendable>(
        _ name: String, field: Field<Model, [Inner]>, orWord word: Field<Model, Word>, of section: Section<Inner>, blank: Inner
    ) -> Key {
        let list = sections(name, field: field, of: section, blank: blank)
        return Key(
            name: name, schema: section.schema.orList(or: ScalarFormat<Word>.word.schema),
            read: { entry, model, path, reader in
                guard let entry, entry.node.scalar != nil, !entry.node.isNothing else { return list.read(entry, &model, path, &reader) }
                if let value = reader.value(entry, as: ScalarFormat<Word>.word, at: path) { model[keyPath: word] = value }
            },
            show: { model in
                model[keyPath: field].isEmpty ? ScalarFormat<Word>.word.show(model[keyPath: word]) : list.show(model)
            })
    }

    /// Mappings by name: those of the model may be given partially; others are added from `blank`, in the order of the document.
    static func named<Inner>(
        _ name: String, field: Field<Model, [Inner]>, by naming: Field<Inner, String>, of section: Section<Inner>,
        blank: @escaping @Sendable (String) -> Inner
    ) -> Key {
        Key(
            name: name, schema: .schema(membersOf: section.schema),
            read: { entry, model, path, reader in
                let given = reader.entries(of: entry, at: path, known: nil)
                for (name, _) in given where !model[keyPath: field].contains(where: { $0[keyPath: naming] == name }) {
                    model[keyPath: field].append(blank(name))
                }
                for index in model[keyPath: field].indices {
                    let name = model[keyPath: field][index][keyPath: naming]
                    let entry = given.first { $0.name == name }?.entry
                    section.read(entry, into: &model[keyPath: field][index], at: path.key(name), with: &reader)
                }
            },
            show: { model in
                .map(model[keyPath: field].map { ConfigDocument.Member($0[keyPath: naming], section.show($0)) })
            })
    }
}
