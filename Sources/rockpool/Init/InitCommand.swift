// `rockpool init URL`: a first configuration for an API (docs/reference/cli.md#init).
import ArgumentParser
import Foundation
import RockpoolCore

struct InitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Write a configuration for an API, with the resources that its description or its answers show.",
        discussion: """
            Without --openapi, --har and --collection a description is looked for at the usual paths of the API. A URL with a path may be that \
            of a description or of a collection.

            EXAMPLES
              rockpool init https://api.example.com
              rockpool init https://api.example.com/v1/notes
              rockpool init https://api.example.com --collection /v1/notes
            """)
    @Argument(help: "The URL of the API: https://api.example.com.") var url: String
    @Option(name: .long, help: "An OpenAPI description, JSON or YAML.", completion: .file()) var openapi: String?
    @Option(name: .long, help: "Recorded traffic, as browsers export it (HAR).", completion: .file()) var har: String?
    @Option(name: .long, help: "The path of a collection, which is fetched; may be repeated.") var collection: [String] = []
    @Option(name: .long, help: "The name of the upstream; by default the host.") var name: String?
    @Option(name: [.short, .long], help: "The file; - is stdout.", completion: .file()) var output = "rockpool.yaml"
    @Flag(name: .long, help: "Replace an existing file.") var force = false

    func validate() throws {
        guard [openapi != nil, har != nil, !collection.isEmpty].count(where: { $0 }) <= 1 else {
            throw ValidationError("give one of --openapi, --har and --collection")
        }
    }

    func run() async throws {
        let address = APIAddress(url)
        let declared = try address.declared(name: name)
        let api = try proposal(for: declared.origin)
        let yaml = try ProposedConfiguration(place: declared.place, name: declared.name, api: api).checked(named: output)
        guard output != "-" else { return Display.output.write(yaml) }
        let file = try NewFile(output, replacing: force)
        do {
            try file.write(yaml)
            try file.finish()
        } catch {
            file.discard()
            throw error
        }
        if api.resources.isEmpty { for note in api.notes.prefix(5) { Display.error.print("rockpool: \(note)".inOneLine) } }
        let count = api.resources.count
        Display.output.print(
            "\(output): \(count.counted("resource"))\(api.source.map { ", from \($0)" } ?? "")".inOneLine)
        Display.output.print("start it: rockpool serve\(output == "rockpool.yaml" ? "" : " --config \(output)")".inOneLine)
    }

    private func proposal(for origin: OriginAddress) throws -> ProposedAPI {
        if let openapi { return try OpenAPIReading(document: Self.document(at: openapi)).proposal(from: openapi) }
        if let har { return try recorded(in: Self.document(at: har), at: har, origin: origin) }
        let probe = APIProbe(origin: origin)
        if !collection.isEmpty { return try probe.collections(collection) }
        let answer = try probe.usual(below: APIAddress(url).path)
        switch answer {
        case .proposed: break
        case .nothing:
            Display.error.print("rockpool: no description was found; name one by --openapi, traffic by --har, or lists by --collection")
        case .unreachable(let reason):
            Display.error.print("rockpool: \(origin.url) cannot be reached, no resources are proposed: \(reason)".inOneLine)
        }
        return answer.proposal
    }

    private func recorded(in document: JSONValue, at place: String, origin: OriginAddress) throws -> ProposedAPI {
        var reading = SampleReading()
        guard let count = reading.note(har: document, origin: origin) else {
            throw CommandFailure(.failed, "\(place) is no HAR file".inOneLine)
        }
        guard count > 0 else { throw CommandFailure(.failed, "\(place) has no request to \(origin.url)".inOneLine) }
        var api = reading.proposal()
        api.source = place
        return api
    }

    private static func document(at file: String) throws -> JSONValue {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw CommandFailure(.failed, "\(file) cannot be read: \(String(cString: strerror(errno)))".inOneLine)
        }
        guard let document = DocumentText.value(of: Array(data)) else {
            throw CommandFailure(.failed, "\(file) is neither JSON nor YAML".inOneLine)
        }
        return document
    }
}
