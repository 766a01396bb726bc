// The `Idempotency-Key` field in the two formats that servers accept (docs/outbox.md#keys; draft-ietf-httpapi-idempotency-key-header).
package import HTTPTypes

/// Writes keys as field values and parses them.
package enum IdempotencyKey {
    /// Bytes of a client's key at most: longer ones would not fit into the indexes of databases.
    package static let lengthLimit = 255

    /// Returns the field value for `key`: a structured-field String, or the bare key as Stripe expects it.
    package static func fieldValue(_ key: String, format: IdempotencySettings.Format) -> String {
        switch format {
        case .raw: key
        case .quoted where !key.utf8.contains { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }: "\"\(key)\""
        case .quoted: "\"" + key.escaping(["\\": "\\\\", "\"": "\\\""]) + "\""
        }
    }

    /// Parses the key in either format; nil when empty or when a quoted string does not end.
    package static func parse(_ fieldValue: String) -> String? {
        var rest = fieldValue.unicodeScalars[...]
        guard rest.popFirst() == "\"" else { return fieldValue.isEmpty ? nil : fieldValue }
        var key = String.UnicodeScalarView()
        var isEscaped = false
        while let scalar = rest.popFirst() {
            if isEscaped {
                key.append(scalar)
                isEscaped = false
            } else if scalar == "\\" {
                isEscaped = true
            } else if scalar == "\"" {
                return rest.isEmpty && !key.isEmpty ? String(key) : nil
            } else {
                key.append(scalar)
            }
        }
        return nil
    }
}

extension IdempotencySettings {
    /// The field that carries the key; `Idempotency-Key` if `header` is no field name, which the configuration excludes.
    package var name: HTTPField.Name { HTTPField.Name(header) ?? .idempotencyKey }
}

extension RequestHead {
    /// Sets the operation's key in the field that the upstream reads. A client's own key in that field is left unchanged.
    package mutating func setKey(_ key: String, isClients: Bool, for settings: IdempotencySettings) {
        if isClients, fields.contains(settings.name) { return }
        guard settings.honoured != .no else { return }
        fields[settings.name] = IdempotencyKey.fieldValue(key, format: settings.format)
    }
}
