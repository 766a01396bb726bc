// `rockpool outbox edit`: changes an operation and sends it in place of the old one (docs/reference/cli.md#outbox-edit;
// docs/outbox.md#steering *edit+retry*).
import ArgumentParser
import Foundation
import HTTPTypes
import RockpoolCore

extension OutboxCommand {
    struct Edit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Edit an operation and send it again, in its previous place, with a new idempotency key.",
            discussion: """
                Without options the request opens as JSON in $VISUAL or $EDITOR; if it is saved unchanged, nothing is sent.

                EXAMPLES
                  rockpool outbox edit ID
                  rockpool outbox edit ID --body '{"title": "shorter"}' --header 'If-Match: "7"'
                  rockpool outbox edit ID --header 'X-Trace:'          # a field without a value is removed
                  rockpool outbox edit ID --file edit.json             # {"method", "url", "headers", "body"}, any of them
                """)
        @Argument(help: "The operation\'s id.", transform: CommonOptions.id) var id: String
        @Option(name: .long, help: "A JSON document with the changes; - is stdin.", completion: .file(extensions: ["json"]))
        var file: String?
        @Option(name: .long, help: "The new method.") var method: String?
        @Option(name: .long, help: "The new URL at the same upstream, or a path.") var url: String?
        @Option(name: .long, help: "A field to set, \"Name: value\", or to remove, \"Name:\"; may be repeated.")
        var header: [String] = []
        @Option(name: .long, help: "The new body, or @FILE.") var body: String?
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let client = try common.client()
            guard let edit = try await edit(client) else { return Display.output.print("unchanged; nothing was sent") }
            var call = AdminCall(method: "PATCH", path: .operation(id))
            call.json = String(decoding: edit.serialized(), as: UTF8.self)
            let edited = try await client.send(call).decoded(as: OperationReport.self)
            Display.output.print("\(id) is replaced by \(edited.id)".inOneLine)
            if let warning = edited.warning { Display.error.print("rockpool: warning: \(warning)".inOneLine) }
        }

        /// The changes to send; nil if there are none.
        private func edit(_ client: AdminClient) async throws -> JSONValue? {
            let isGiven = method != nil || url != nil || !header.isEmpty || body != nil
            if let file {
                guard !isGiven else { throw ValidationError("--file contains all changes; omit the other options") }
                return try EditDocument.parse(try InputFile.contents(of: file), name: file)
            }
            if isGiven { return try given() }
            guard isatty(STDIN_FILENO) == 1, Display.error.isTerminal else {
                throw ValidationError("give the changes with --file, --method, --url, --header or --body; an editor needs a terminal")
            }
            let reply = try await client.send(.get(.operation(id)))
            let document = EditDocument(try EditDocument.parse(reply.body, name: "the server's response"))
            return try document.edited(byEditorOn: id)
        }

        private func given() throws -> JSONValue {
            var edit: JSONValue = [:]
            edit["method"] = method.map { .string($0) }
            edit["url"] = url.map { .string($0) }
            if !header.isEmpty { edit["headers"] = try EditDocument.headers(header) }
            if let body {
                let bytes = body.hasPrefix("@") ? try InputFile.contents(of: String(body.dropFirst())) : Data(body.utf8)
                edit["bodyBase64"] = .string(Base64.encode(Array(bytes)))
            }
            return edit
        }
    }
}

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
    static func headers(_ lines: [String]) throws -> JSONValue {
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
    func indented(_ level: Int = 0) -> String {
        let (inner, outer) = (String(repeating: "  ", count: level + 1), String(repeating: "  ", count: level))
        switch self {
        case .array(let items) where !items.isEmpty:
            return "[\n" + items.map { inner + $0.indented(level + 1) }.joined(separator: ",\n") + "\n\(outer)]"
        case .object(let members) where !members.isEmpty:
            let lines = members.map { name, value in
                "\(inner)\(String(decoding: JSONValue.string(name).serialized(), as: UTF8.self)): \(value.indented(level + 1))"
            }
            return "{\n" + lines.joined(separator: ",\n") + "\n\(outer)}"
        default: return String(decoding: serialized(), as: UTF8.self)
        }
    }
}
