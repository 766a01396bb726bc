// `rockpool outbox edit`: changes an operation and sends it in place of the old one (docs/reference/cli.md#outbox-edit;
// docs/outbox.md#steering *edit+retry*).
import ArgumentParser
import Foundation
import Glibc
import HTTPTypes
import RockpoolCore

extension OutboxCommand {
    struct Edit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Edit an operation and send it again, in its previous place, with a new idempotency key.",
            discussion: """
                Without options the request opens as JSON in $VISUAL or $EDITOR; if it is saved unchanged, nothing is sent.

                EXAMPLES
                  rockpool outbox edit ID                   # in the editor
                  rockpool outbox edit ID --body '{"title": "shorter"}'
                  rockpool outbox edit ID --header 'X-Trace:'          # removes the field
                  rockpool outbox edit ID --file edit.json

                The file is an object with any of the members method, url, headers and body.
                """)
        @Argument(help: "The operation\'s id, or a part of it.", completion: Completions.operations, transform: CommonOptions.id) var id:
            String
        @Option(name: .long, help: "A JSON document with the changes; - is stdin.", completion: .file(extensions: ["json"]))
        var file: String?
        @Option(name: .long, help: "The new method.") var method: String?
        @Option(name: .long, help: "The new URL at the same upstream, or a path.") var url: String?
        @Option(name: .long, help: "A field to set, \"Name: value\", or to remove, \"Name:\"; may be repeated.")
        var header: [String] = []
        @Option(name: .long, help: "The new body, whole, or @FILE.") var body: String?
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let client = try common.client()
            guard let edit = try await edit(through: client) else { return Display.output.print("unchanged; nothing was sent") }
            var call = AdminCall(method: "PATCH", path: .operation(id))
            call.json = String(decoding: edit.serialized(), as: UTF8.self)
            let edited = try await client.send(call).decoded(as: OperationReport.self)
            let waiting = edited.waiting.map { "It waits: \($0)\n" } ?? ""
            Display.output.print(
                "\(id) is replaced by \(edited.id)\n\(waiting)Next: see its answer, once it is sent: rockpool outbox show \(edited.id)")
            if let warning = edited.warning { Display.error.print("rockpool: warning: \(warning)".inOneLine) }
        }

        /// The changes to send; nil if there are none.
        private func edit(through client: AdminClient) async throws -> JSONValue? {
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
            if !header.isEmpty { edit["headers"] = try EditDocument.headers(from: header) }
            if let body {
                let isPath = (try? JSONValue.parse(Array(body.utf8))) == nil && FileManager.default.fileExists(atPath: body)
                guard body.hasPrefix("@") || !isPath else {
                    throw ValidationError("--body takes the body itself; to read it from the file: --body @\(body)")
                }
                let bytes = body.hasPrefix("@") ? try InputFile.contents(of: String(body.dropFirst())) : Data(body.utf8)
                edit["bodyBase64"] = .string(Base64.encode(Array(bytes)))
            }
            return edit
        }
    }
}

/// The request of an operation in its editable form (docs/reference/admin-api.md#steering).
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

/// `rockpool outbox cancel|discard`: cancels one operation, or also all its dependants (docs/reference/cli.md#outbox-discard;
/// docs/outbox.md#steering, P13).
extension OutboxCommand {
    struct Discard: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Discard an operation, or all that are selected; they stay readable as cancelled.",
            discussion: """
                Operations that depend on it are listed, and cancelled too after a confirmation or with --tree.

                EXAMPLES
                  rockpool outbox discard ID
                  rockpool outbox discard --state dead --upstream notes --yes
                """)
        @Argument(help: "The operation\'s id, or a part of it.", completion: Completions.operations, transform: CommonOptions.id) var id:
            String?
        @Flag(name: .long, help: "Also cancel all operations that depend on it.") var tree = false
        @OptionGroup var bulk: OutboxBulk
        @OptionGroup var common: CommonOptions

        func validate() throws {
            if (id == nil) != bulk.isUsed { throw ValidationError("give the id of an operation, or --state") }
        }

        func run() async throws {
            guard let id else {
                let query = tree ? ["tree": "true"] : [:]
                return try await bulk.run(verb: "discard", through: try common.client()) {
                    AdminCall(method: "DELETE", path: .operation($0), query: query)
                }
            }
            try await GivingUp(id: id, call: .delete(.operation(id)), said: "is discarded").run(
                through: try common.client(), withTree: tree)
        }
    }

    struct Cancel: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Cancel an operation that was not sent yet.",
            discussion: .examples(
                "rockpool outbox cancel ID",
                after: "Guaranteed only if no attempt was sent; otherwise a warning is printed."))
        @Argument(help: "The operation\'s id, or a part of it.", completion: Completions.operations, transform: CommonOptions.id) var id:
            String
        @Flag(name: .long, help: "Also cancel all operations that depend on it.") var tree = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            let call = AdminCall.post(.operation(id, verb: "cancel"))
            try await GivingUp(id: id, call: call, said: "is cancelled").run(through: try common.client(), withTree: tree)
        }
    }
}

/// The cancellation of one operation, with the question if others depend on it.
private struct GivingUp {
    var id: String
    var call: AdminCall
    var said: String

    func run(through client: AdminClient, withTree: Bool) async throws {
        do {
            try await send(through: client, withTree: withTree)
        } catch AdminFailure.needed(let others) where !withTree {
            let lines = others.map { "  \($0.id)  \($0.method) \($0.url)".inOneLine }.joined(separator: "\n")
            Display.error.print("\(id) is needed by:\n\(lines)".replacing("\u{1B}", with: ""))
            guard isatty(STDIN_FILENO) == 1, Display.error.isTerminal else {
                throw CommandFailure(.failed, "nothing has changed; add --tree to cancel all \(others.count + 1) of them")
            }
            Display.error.write("Cancel all \(others.count + 1) of them? [y/N] ")
            guard ["y", "yes"].contains(readLine()?.lowercased()) else { throw CommandFailure(.failed, "nothing has changed") }
            try await send(through: client, withTree: true)
        }
    }

    private func send(through client: AdminClient, withTree: Bool) async throws {
        var call = call
        if withTree { call.query["tree"] = "true" }
        try await OutboxCommand.change(through: client, call: call, id: id, said: said)
    }
}
