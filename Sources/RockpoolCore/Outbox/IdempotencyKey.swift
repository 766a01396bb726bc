// The `Idempotency-Key` field in the two ways servers take it (outbox.md §2.1; draft-ietf-httpapi-idempotency-key-header).

/// How a key is written into a field and read from one.
package enum IdempotencyKey {
    /// The field value that carries `key`: a structured-field String, or the bare key as Stripe takes it.
    package static func fieldValue(_ key: String, format: IdempotencySettings.Format) -> String {
        switch format {
        case .raw: key
        case .quoted: "\"" + key.escaping(["\\": "\\\\", "\"": "\\\""]) + "\""
        }
    }

    /// The key a field value carries, in either form; nil when empty or a quoted string that does not end.
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
