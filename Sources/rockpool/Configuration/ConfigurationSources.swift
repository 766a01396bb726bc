// Reads a YAML file, `ROCKPOOL_` variables and flags into a configuration, or into all of their errors
// (docs/reference/configuration.md#sources).
import Foundation
import RockpoolCore
import RockpoolStore
import Yams

/// The sources of one configuration. A flag takes precedence over a variable, a variable over the file.
struct ConfigurationSources {
    /// The YAML file; nil means the defaults.
    var file: String?
    var environment: [String: String] = ProcessInfo.processInfo.environment
    /// The consents for a file that was found in the working directory; nil for a file that the user has named, which decides everything.
    var consents: ConsentBook?
    /// Command-line flags, by configuration key.
    var flags: [String: (flag: String, text: String)] = [:]

    /// Reads and checks the sources and resolves the directories.
    func load() throws(ConfigurationError) -> LoadedConfiguration {
        guard let file else { return try load(yaml: "", named: "rockpool.yaml") }
        guard let data = FileManager.default.contents(atPath: file) else {
            let why = access(file, R_OK) == 0 ? "it is no file" : String(cString: strerror(errno))
            throw ConfigurationError(problems: [Problem(place: .file(file, line: 0), message: "cannot be read: \(why)")])
        }
        guard let yaml = String(data: data, encoding: .utf8) else {
            throw ConfigurationError(problems: [Problem(place: .file(file, line: 1), message: "is not UTF-8 text")])
        }
        let bytes = Array(data)
        return try load(yaml: yaml, named: file, decides: consents?.holds(file, bytes: bytes) ?? true)
    }

    /// Reads the configuration from text.
    /// - Parameters:
    ///   - name: The file name used in problems.
    ///   - decides: False for a file that must not set what only the user decides (`Key.needsConsent`).
    func load(yaml: String, named name: String, decides: Bool = true) throws(ConfigurationError) -> LoadedConfiguration {
        var reader = ConfigReader(file: name, environment: environment, flags: flags)
        reader.decides = decides
        var configuration = Configuration()
        let root = try Self.compose(yaml, named: name).map { Entry(node: $0, place: .file(name, line: $0.mark?.line ?? 1)) }
        Configuration.section.read(root, into: &configuration, at: .root, with: &reader)
        if configuration.storage.limit != nil {
            // One number is enough; what is given beside it counts.
            if reader.places["storage.cache_limit"] == nil { configuration.storage.cacheBound = StorageBound.cacheShare }
            if reader.places["storage.data_limit"] == nil { configuration.storage.dataBound = StorageBound.dataShare }
        }
        Directories(environment: environment, file: file, places: reader.places).resolve(&configuration)
        for found in configuration.contradictions() { reader.refuse(found) }
        if !reader.problems.isEmpty { throw ConfigurationError(problems: reader.problems.inOrder, logFormat: configuration.log.format) }
        if !reader.decisions.isEmpty {
            let request = ConsentRequest(file: name, bytes: Array(yaml.utf8), decisions: reader.decisions)
            throw ConfigurationError(problems: [request.problem], consent: request, logFormat: configuration.log.format)
        }
        return LoadedConfiguration(
            configuration: configuration, places: reader.places,
            warnings: Self.warnings(for: environment, known: reader.variables) + configuration.warnings)
    }

    private static func compose(_ yaml: String, named name: String) throws(ConfigurationError) -> Node? {
        do {
            return try BoundedYAML.compose(yaml)
        } catch let error as YamlError {
            throw ConfigurationError(problems: [Problem(error, named: name)])
        } catch let error as BoundedYAML.Refusal {
            throw ConfigurationError(problems: [Problem(place: .file(name, line: error.line), message: "is not YAML: \(error.problem)")])
        } catch {
            throw ConfigurationError(problems: [Problem(place: .file(name, line: 1), message: "is not YAML: \(error)")])
        }
    }

    /// Variables of ours that name no key: short names of two, and the program that the tests run.
    private static let others: Set<String> = ["ROCKPOOL_BINARY", "ROCKPOOL_SOCKET", "ROCKPOOL_STATE_DIR"]

    /// Unknown variables with our prefix: only a warning, since other programs may use the prefix too.
    private static func warnings(for environment: [String: String], known: Set<String>) -> [String] {
        environment.keys.filter { $0.hasPrefix("ROCKPOOL_") && !known.contains($0) && !Self.others.contains($0) }.sorted().map { name in
            let nearest = Nearest.to(name, of: known.sorted()).map { " (nearest valid variable: \($0))" } ?? ""
            return "unknown variable \(name)\(nearest)"
        }
    }
}

extension Problem {
    fileprivate init(_ error: YamlError, named name: String) {
        switch error {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            let began = context.map { " (\($0.text) from line \($0.mark.line))" } ?? ""
            self.init(place: .file(name, line: mark.line), message: "is not YAML: \(problem)\(began)")
        case .duplicatedKeysInMapping(let duplicates, let context):
            let keys = duplicates.map { "\"\($0)\"" }.joined(separator: ", ")
            self.init(place: .file(name, line: context.mark.line), message: "given twice in the mapping that begins here: \(keys)")
        default:
            self.init(place: .file(name, line: 1), message: "is not YAML: \(error)")
        }
    }
}

extension [Problem] {
    /// Sorted by line, with variables and flags last; problems of one line stay in order.
    fileprivate var inOrder: [Problem] {
        enumerated().sorted { a, b in
            switch (a.element.place, b.element.place) {
            case (.file(_, let x), .file(_, let y)): x == y ? a.offset < b.offset : x < y
            case (.file, _): true
            case (_, .file): false
            default: a.offset < b.offset
            }
        }.map(\.element)
    }
}

/// A configuration, with the sources of its values and the warnings about it.
struct LoadedConfiguration: Sendable {
    var configuration: Configuration
    /// The file that was read; nil without one.
    var file: String?
    /// The source of each key that was set; every other key has its default.
    var places: [String: Place]
    /// Warnings for stderr: unknown variables and probable mistakes.
    var warnings: [String]
    /// True if the file was found in the working directory.
    var isFound = false
}
