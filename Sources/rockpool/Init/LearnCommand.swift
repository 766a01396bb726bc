// `rockpool learn`: resources that the traffic of a running server shows, as a diff to its configuration (docs/reference/cli.md#learn).
import ArgumentParser
import Foundation
import RockpoolCore

struct LearnCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "learn", abstract: "Propose resources from the traffic of the running server, as a diff to its configuration.",
        discussion: .examples(
            "rockpool learn > learned.diff",
            "rockpool learn --upstream notes --for 5s",
            after:
                "Reads the names of members in what is stored, no values. Nothing is changed; apply the diff by: rockpool learn | patch FILE"
        ), shouldDisplay: false)
    @Option(name: [.customLong("for")], help: "Watch for this time first, such as 5m.", transform: TimeSpan.argument)
    var duration: TimeSpan = .zero
    @Option(name: .long, help: "Only this upstream.", completion: Completions.upstreams) var upstream: String?
    @OptionGroup var common: CommonOptions

    func run() async throws {
        guard let server = try await common.running() else { throw AdminFailure.notRunning(socket: try common.client().socket) }
        guard let file = server.facts.configFile, let data = FileManager.default.contents(atPath: file) else {
            throw CommandFailure(.failed, "the server has no configuration file; begin with: rockpool init URL")
        }
        if duration > .zero {
            let pause = duration.milliseconds
            try await Waiting.on("watching") { try await Task.sleep(for: .milliseconds(pause)) }
        }
        let text = String(decoding: data, as: UTF8.self)
        let before = try ConfigurationSources(file: file, environment: [:]).load()
        var patch = ConfigurationPatch(file: file, text: text)
        var added: [String: [ProposedResource]] = [:]
        for (index, declared) in server.configuration.upstreams.enumerated() where upstream == nil || declared.name == upstream {
            let found = try await proposal(for: declared, from: server.client)
            for note in found.notes { Display.error.print("rockpool: \(declared.name): \(note)".inOneLine) }
            guard !found.resources.isEmpty else { continue }
            let line = Self.line(of: before.places["upstreams[\(index)].name"])
            var wider = patch
            let resourcesAt = line.flatMap { declared.resources.isEmpty ? nil : Self.resources(in: text, below: $0) }
            let all = added.merging([declared.name: found.resources]) { $1 }
            guard let line, wider.add(found.resources, toUpstreamAt: line, resourcesAt: resourcesAt),
                (try? wider.check(adds: all, to: before.configuration)) != nil
            else {
                Self.tell(found.resources, of: declared, at: line.map { "\(file):\($0)" } ?? file)
                continue
            }
            (patch, added) = (wider, all)
        }
        try patch.check(adds: added, to: before.configuration)
        let count = added.values.reduce(0) { $0 + $1.count }
        Display.output.write(patch.text)
        Display.error.print("rockpool: \(count.counted("resource is", "resources are")) proposed for \(file)".inOneLine)
    }

    /// Says what to insert by hand: a form that is right in a list of lines and in a list within brackets.
    private static func tell(_ resources: [ProposedResource], of declared: Upstream, at place: String) {
        Display.error.print(
            "rockpool: \(place): \(declared.name) is written in a form that a diff cannot extend; put these into its list `resources`:"
                .inOneLine)
        for resource in resources {
            let lines = resource.document.json().split(whereSeparator: \.isNewline)
            Display.error.print("  " + lines.map { $0.drop { $0 == " " } }.joined(separator: " ").inOneLine)
        }
    }

    /// The resources of the stored responses, shared and private, that are not declared yet.
    private func proposal(for declared: Upstream, from client: AdminClient) async throws -> ProposedAPI {
        var call = AdminCall.post("/v1/cache/shapes")
        call.query["prefix"] = declared.origin.url + "/"
        let stored = try JSONValue.parse(Array(try await client.send(call, timeout: .seconds(60)).body), sizeLimit: .mib(64))
        var reading = SampleReading()
        for document in stored["items"]?.array ?? [] {
            guard let path = document["path"]?.string else { continue }
            reading.note(method: "GET", path: path, status: 200, body: document["shape"])
        }
        var found = reading.proposal()
        found.remove(Set(declared.resources.map(\.collection)))
        if let unread = stored["unread"]?.integer, unread > 0 {
            found.notes.append(unread.counted("response") + " too long, or with a content coding other than gzip and deflate, not read")
        }
        return found
    }

    private static func line(of place: Place?) -> Int? {
        guard case .file(_, let line)? = place else { return nil }
        return line
    }

    /// The line of `resources:` of the upstream that begins at a line; nil if it is not written as a block.
    private static func resources(in text: String, below line: Int) -> Int? {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.indices.first { $0 >= line - 1 && lines[$0].drop { $0 == " " || $0 == "-" }.hasPrefix("resources:") }.map { $0 + 1 }
    }
}
