// `rockpool learned`: what the running server has learned of APIs without declared resources (docs/reference/cli.md#learned).
import ArgumentParser
import Foundation
import RockpoolCore

struct LearnedCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "learned",
        abstract: "Show what was learned of APIs from their traffic, write it into the configuration, or forget it.",
        discussion: .examples(
            "rockpool learned ls", "rockpool learned pin --dry-run", "rockpool learned forget notes --collection /v1/notes"),
        shouldDisplay: false, subcommands: [List.self, Pin.self, Forget.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List collections: what is known, what has shown it, and what is missing to know more.",
            discussion: .examples("rockpool learned ls", "rockpool learned ls --upstream notes --format json"))
        @Option(name: .long, help: "Only this upstream.", completion: Completions.upstreams) var upstream: String?
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            let reply = try await options.common.client().send(.get("/v1/learned", query: upstream.map { ["upstream": $0] } ?? [:]))
            try options.print(reply, as: LearnedListReport.self)
        }
    }

    struct Pin: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Write what is known of an upstream into the configuration file, and apply it. Nothing more is learned of it then.",
            discussion: .examples("rockpool learned pin", "rockpool learned pin notes --dry-run"))
        @Argument(help: "The upstream; by default every one that has learned something.", completion: Completions.upstreams)
        var upstream: String?
        @Flag(name: .long, help: "Show the lines, change nothing.") var dryRun = false
        @OptionGroup var common: CommonOptions

        func run() async throws {
            guard let server = try await common.running() else { throw AdminFailure.notRunning(socket: try common.client().socket) }
            let query = upstream.map { ["upstream": $0] } ?? [:]
            let report = try await server.client.send(.get("/v1/learned", query: query)).decoded(as: LearnedListReport.self)
            let known = Dictionary(grouping: report.items.filter { $0.resource != nil }, by: \.upstream)
            let added = known.mapValues { items in items.compactMap(\.proposed).filter(\.isPlain) }.filter { !$0.value.isEmpty }
            guard !added.isEmpty else { return Display.error.print("rockpool: nothing is known yet; see: rockpool learned ls") }
            guard let file = server.facts.configFile, let data = FileManager.default.contents(atPath: file) else {
                return Self.tell(added, of: server)
            }
            let edit = ConfigurationEdit(text: String(decoding: data, as: UTF8.self), named: file)
            let text = try Self.patched(edit, adding: added)
            Display.output.print("\(file):".inOneLine)
            for line in edit.added(in: text) { Display.output.print("+ \(line)".inOneLine) }
            guard !dryRun else { return }
            try edit.checkWritable()
            try edit.write(text)
            try await server.client.reload(after: edit)
        }

        /// The file with the resources of each upstream, by its name.
        private static func patched(_ edit: ConfigurationEdit, adding added: [String: [ProposedResource]]) throws -> String {
            let before = try ConfigurationSources(file: edit.file, environment: [:]).load()
            var patch = ConfigurationPatch(file: edit.file, text: edit.text)
            for (index, declared) in before.configuration.upstreams.enumerated() {
                guard let resources = added[declared.name] else { continue }
                guard case .file(_, let line)? = before.places["upstreams[\(index)].name"],
                    patch.add(resources, toUpstreamAt: line, resourcesAt: nil)
                else {
                    throw CommandFailure(
                        .failed,
                        "\(edit.file): \(declared.name) is written in a form without a place for lines; see: rockpool learn".inOneLine)
                }
            }
            try patch.check(adds: added, to: before.configuration)
            return patch.patched
        }

        /// Prints what to put into a file, for a server that has none.
        private static func tell(_ added: [String: [ProposedResource]], of server: RunningServer) {
            Display.error.print("rockpool: the server has no configuration file; these lines describe what it has learned")
            Display.output.print("upstreams:")
            for declared in server.configuration.upstreams {
                guard let resources = added[declared.name] else { continue }
                var api = ProposedAPI()
                for resource in resources { api.add(resource) }
                let entry = ProposedConfiguration(
                    place: declared.place, name: declared.name, api: api, gateway: declared.gateway ?? "127.0.0.1:7630"
                ).entry
                for line in entry { Display.output.print("  \(line)".inOneLine) }
            }
        }
    }

    struct Forget: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forget what was learned of an upstream. It is learned anew from its traffic, unless resources is off.",
            discussion: .examples("rockpool learned forget notes", "rockpool learned forget notes --collection /v1/notes"))
        @Argument(help: "The upstream.", completion: Completions.upstreams) var upstream: String
        @Option(name: .long, help: "Only this path of a collection.") var collection: String?
        @OptionGroup var options: ReadingOptions

        func run() async throws {
            var query = ["upstream": upstream]
            query["collection"] = collection
            try options.print(
                try await options.common.client().send(.delete("/v1/learned", query: query)), as: ForgottenLearningReport.self)
        }
    }
}

/// Reports of `learned` as tables (docs/reference/admin-api.md#learned).
struct LearnedListReport: TabularReport, Equatable {
    struct Item: Decodable, Equatable {
        var upstream: String
        var state: String
        var collection: String
        var resource: Known?
        var reason: String
        var missing: String?
    }

    /// A resource by the names of the configuration.
    struct Known: Decodable, Equatable {
        var collection: String
        var item: String?
        var items: String
        var element: String
        var envelope: String
        var content: String?
        var id: String
        var version: String
        var updatedAt: String?
        var profile: String?
        var creates: Bool
    }

    var items: [Item]

    var emptyNote: String? { "nothing was learned; it is learned from reads of lists and their entries" }

    var tables: [TextTable] {
        [
            TextTable(
                columns: [.text("UPSTREAM"), .text("STATE"), .text("COLLECTION"), .text("ENTRY"), .text("SHOWN BY"), .text("MISSING")],
                rows: items.map { item in
                    [
                        .init(item.upstream), .init(item.state), .init(item.collection), .init(item.resource?.item ?? "–"),
                        .init(item.reason), .init(item.missing ?? "–"),
                    ]
                })
        ]
    }
}

extension LearnedListReport.Item {
    /// The resource as it is written into a configuration; nil if it is not known.
    var proposed: ProposedResource? {
        guard let resource, let item = resource.item else { return nil }
        var proposed = ProposedResource(
            collection: resource.collection, item: item, items: resource.items, element: resource.element, envelope: resource.envelope,
            profile: resource.profile.flatMap(Profile.init(rawValue:)), id: resource.id, updatedAt: resource.updatedAt)
        proposed.version = resource.version
        proposed.content = resource.content ?? ""
        proposed.isOptimistic = resource.creates
        proposed.evidence = ["Learned from \(reason)"]
        return proposed
    }
}

struct ForgottenLearningReport: TabularReport, Equatable {
    var upstream: String
    var forgotten: Int

    var tables: [TextTable] { [.facts([("upstream", .init(upstream)), ("forgotten", "\(forgotten)")])] }
}
