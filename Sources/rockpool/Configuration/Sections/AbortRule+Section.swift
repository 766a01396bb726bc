// The key `on_abort`: a word, or a mapping with the bounds (docs/reference/configuration.md#fetches-without-a-client).
import RockpoolCore
import Yams

extension Key {
    /// `always`, `never`, or a mapping; `null` removes it.
    static func abortRule(_ name: String, field: Field<Model, AbortRule?>) -> Key {
        let words = ScalarFormat<AbortRule.Word>.word
        return Key(
            name: name, schema: words.schema.orNull(or: AbortBounds.section.schema),
            read: { entry, model, path, reader in
                let isOverridden = reader.override(of: path) != nil
                if let entry, !isOverridden, entry.node.scalar == nil {
                    var bounds = AbortBounds()
                    AbortBounds.section.read(entry, into: &bounds, at: path, with: &reader)
                    model[keyPath: field] = .bounds(bounds)
                } else if entry?.node.isNothing == true, !isOverridden {
                    model[keyPath: field] = nil
                } else if let word = reader.value(entry, as: words, at: path) {
                    model[keyPath: field] = .word(word)
                }
            },
            show: { model in
                switch model[keyPath: field] {
                case nil: .null
                case .word(let word): words.show(word)
                case .bounds(let bounds): AbortBounds.section.show(bounds)
                }
            })
    }
}

extension AbortBounds {
    static let section = Section<AbortBounds>([
        .value("finish_below", field: \.finishBelow, as: .size),
        .value("finish_above", field: \.finishAbovePercent, as: .percent),
    ])
}
