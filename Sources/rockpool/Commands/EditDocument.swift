// The document of an edited operation (docs/reference/admin-api.md#steering).
import ArgumentParser
import Foundation
import RockpoolCore

/// The request of an operation in its editable form.
struct EditDocument: Equatable {
    private static let members = ["method", "url", "headers", "body", "bodyBase64"]

    /// The editable members with their present values.
    let original: JSONValue

    /// - Parameter operation: the document of `GET /v1/operations/{id}`.
    init(_ operation: JSONValue) {
        var original: JSONValue = [:]
        for name in Self.members { original[name] = operation[name] }
        self.original = original
    }

    /// Parses an object. Throws a failure that names its source.
    static func parse(_ data: Data, name: String) throws(CommandFailure) -> JSONValue {
        do {
            let value = try JSONValue.parse(Array(data))
            guard value.object != nil else { throw CommandFailure(.failed, "\(name.inOneLine) holds no JSON object") }
            return value
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(.failed, "\(name) is not JSON: \(error)".inOneLine)
        }
    }

    /// Converts `--header` options to the member `headers`; a field without a value is null.
    static func headers(from lines: [String]) throws -> JSONValue {
        var headers = JSONObject()
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else { throw ValidationError("--header takes \"Name: value\", not \"\(line)\"".inOneLine) }
            let value = parts[1].trimmingCharacters(in: .whitespaces)
            headers[String(parts[0])] = value.isEmpty ? .null : .string(value)
        }
        return .object(headers)
    }

    /// The members that differ in `edited`; nil if none does. A removed header becomes null.
    func changes(in edited: JSONValue) -> JSONValue? {
        var changes: JSONValue = [:]
        for (name, value) in edited.object ?? JSONObject() where original[name] != value { changes[name] = value }
        if let before = original["headers"]?.object, let after = changes["headers"]?.object {
            var headers = JSONObject()
            for (name, value) in after where before[name] != value { headers[name] = value }
            for name in before.names where after[name] == nil { headers[name] = .null }
            changes["headers"] = .object(headers)
        }
        return changes.object?.isEmpty == false ? changes : nil
    }

    /// Opens the document in the editor. Unreadable input stays in its file, so that the work is not lost.
    func edited(byEditorOn id: String) throws -> JSONValue? {
        let text = Array((original.indented() + "\n").utf8)
        let file = try EditorFile(text, suffix: ".json")
        guard let data = try file.edit(), Array(data) != text else {
            file.remove()
            return nil
        }
        let edited: JSONValue
        do {
            edited = try Self.parse(data, name: file.path)
        } catch {
            throw CommandFailure(.failed, "\(error.message); nothing was sent")
        }
        file.remove()
        return changes(in: edited)
    }
}

extension JSONValue {
    /// The value with two spaces of indentation per level.
    func indented(by level: Int = 0) -> String {
        let (inner, outer) = (String(repeating: "  ", count: level + 1), String(repeating: "  ", count: level))
        switch self {
        case .array(let items) where !items.isEmpty:
            return "[\n" + items.map { inner + $0.indented(by: level + 1) }.joined(separator: ",\n") + "\n\(outer)]"
        case .object(let members) where !members.isEmpty:
            let lines = members.map { name, value in
                "\(inner)\(String(decoding: JSONValue.string(name).serialized(), as: UTF8.self)): \(value.indented(by: level + 1))"
            }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(outer)}"
        default: return String(decoding: serialized(), as: UTF8.self)
        }
    }
}
