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
