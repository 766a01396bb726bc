// The description of one mapping of the configuration, used to read, print and override it (docs/reference/configuration.md).
import Yams

/// The keys of one mapping: the single source for reading, `config show`, variables and the schema.
struct Section<Model>: Sendable {
    let keys: [Key<Model>]

    init(_ keys: [Key<Model>]) { self.keys = keys }

    /// Reads the given keys into the model; all others keep their values.
    func read(_ entry: Entry?, into model: inout Model, at path: KeyPathName, with reader: inout ConfigReader) {
        let given = Dictionary(
            reader.entries(of: entry, at: path, known: keys.map(\.name)).map { ($0.name, $0.entry) },
            uniquingKeysWith: { first, _ in first })
        for key in keys {
            if key.isRequired, given[key.name] == nil, let entry {
                reader.refuse("\(path.text): \(key.name) is missing", at: entry.place)
            }
            let before = key.needsConsent && !reader.decides && given[key.name] != nil ? key.show(model) : nil
            key.read(given[key.name], &model, path.key(key.name), &reader)
            if let before, key.show(model) != before { reader.note(decision: key.show(model), at: path.key(key.name)) }
        }
    }

    /// The JSON Schema of the mapping.
    var schema: ConfigDocument {
        var schema = ConfigDocument.schema("object").adding(
            "properties", value: .map(keys.map { ConfigDocument.Member($0.name, $0.schema) })
        )
        .adding("additionalProperties", value: .bool(false))
        let required = keys.filter(\.isRequired).map { ConfigDocument.text($0.name) }
        if !required.isEmpty { schema = schema.adding("required", value: .list(required)) }
        return schema
    }

    /// Every key with its value.
    func show(_ model: Model) -> ConfigDocument {
        .map(keys.map { ConfigDocument.Member($0.name, $0.show(model)) })
    }
}

/// One key: its name, and how it is read into the model and shown.
struct Key<Model>: Sendable {
    let name: String
    var isRequired = false
    /// True if a file that nobody has named may not set the key without the user's consent: it runs a program, names a file or a directory of
    /// this machine, a socket, an authority or another host that sees what is sent, or opens the proxy to others.
    var needsConsent = false
    /// The JSON Schema of the value.
    let schema: ConfigDocument
    let read: @Sendable (Entry?, inout Model, KeyPathName, inout ConfigReader) -> Void
    let show: @Sendable (Model) -> ConfigDocument

    /// This key, made mandatory in its mapping.
    var required: Key {
        var key = self
        key.isRequired = true
        return key
    }

    /// This key, which only the user decides.
    var consented: Key {
        var key = self
        key.needsConsent = true
        return key
    }
}

/// A key path that can be stored in a description.
typealias Field<Model, Value> = any WritableKeyPath<Model, Value> & Sendable

extension Key {
    /// A scalar that always has a value.
    static func value<Value>(_ name: String, field: Field<Model, Value>, as form: ScalarFormat<Value>) -> Key {
        Key(
            name: name, needsConsent: form.namesFile, schema: form.schema,
            read: { entry, model, path, reader in
                if let value = reader.value(entry, as: form, at: path) { model[keyPath: field] = value }
            },
            show: { form.show($0[keyPath: field]) })
    }

    /// A scalar that may be absent or `null`.
    static func optional<Value>(_ name: String, field: Field<Model, Value?>, as form: ScalarFormat<Value>) -> Key {
        Key(
            name: name, needsConsent: form.namesFile, schema: form.schema.orNull,
            read: { entry, model, path, reader in
                if entry?.node.isNothing == true, reader.override(of: path) == nil {
                    model[keyPath: field] = nil
                } else if let value = reader.value(entry, as: form, at: path) {
                    model[keyPath: field] = value
                }
            },
            show: { $0[keyPath: field].map(form.show) ?? .null })
    }

    /// A list of scalars; a variable separates them by commas.
    static func list<Value>(_ name: String, field: Field<Model, [Value]>, of form: ScalarFormat<Value>) -> Key {
        Key(
            name: name, needsConsent: form.namesFile, schema: form.schema.orList,
            read: { entry, model, path, reader in
                if let values = reader.values(entry, as: form, at: path) { model[keyPath: field] = values }
            },
            show: { .list($0[keyPath: field].map(form.show)) })
    }

    /// A mapping with keys chosen by the user.
    static func map(
        _ name: String, field: Field<Model, [String: String]>, keys: ScalarFormat<String>, values: ScalarFormat<String>
    ) -> Key {
        Key(
            name: name, schema: .schema(membersOf: values.schema),
            read: { entry, model, path, reader in
                for (name, entry) in reader.entries(of: entry, at: path, known: nil) {
                    reader.checking(at: path.key(name), place: entry.place) { () throws(Invalid) in _ = try keys.parse(name) }
                    if let value = reader.value(entry, as: values, at: path.key(name)) { model[keyPath: field][name] = value }
                }
            },
            show: { model in
                .map(model[keyPath: field].sorted { $0.key < $1.key }.map { ConfigDocument.Member($0.key, values.show($0.value)) })
            })
    }
}

extension ConfigReader {
    /// The value of a scalar key; nil if it is not set or was refused.
    mutating func value<Value>(_ entry: Entry?, as form: ScalarFormat<Value>, at path: KeyPathName) -> Value? {
        guard let (text, place) = text(entry, at: path) else { return nil }
        return checking(at: path, place: place) { () throws(Invalid) in try form.parse(text) }
    }

    /// The values of a list of scalars; nil if it is not set. Refused items are omitted.
    mutating func values<Value>(_ entry: Entry?, as form: ScalarFormat<Value>, at path: KeyPathName) -> [Value]? {
        if let (text, place) = override(of: path) {
            return text.split(separator: ",").map { String($0.drop(while: \.isWhitespace)) }.compactMap { item in
                checking(at: path, place: place) { () throws(Invalid) in try form.parse(item) }
            }
        }
        guard let entry else { return nil }
        return items(of: entry, at: path).enumerated().compactMap { index, item in
            value(item, as: form, at: path.item(index))
        }
    }

    @discardableResult
    fileprivate mutating func checking<Value>(at path: KeyPathName, place: Place, _ step: () throws(Invalid) -> Value) -> Value? {
        do {
            return try step()
        } catch {
            refuse("\(path.text): \(error.reason)", at: place)
            return nil
        }
    }
}

/// Keys with mappings as values: required, optional, a list of them, or mappings by name.
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

/// The name of a key from the root (docs/reference/configuration.md#variables): `proxy.timeouts.head`, `upstreams[0].name`.
struct KeyPathName: Hashable, Sendable {
    var text: String
    /// Keys of list items have no variable, because it could not identify the item.
    var isOverridable = true

    static let root = KeyPathName(text: "")

    func key(_ name: String) -> KeyPathName {
        KeyPathName(text: text.isEmpty ? name : "\(text).\(name)", isOverridable: isOverridable)
    }

    func item(_ index: Int) -> KeyPathName { KeyPathName(text: "\(text)[\(index)]", isOverridable: false) }

    /// The environment variable: `ROCKPOOL_PROXY_TIMEOUTS_HEAD`.
    var variable: String {
        "ROCKPOOL_" + String(text.uppercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
    }
}
