// The keys of the effective configuration with their values and sources, for the dashboard (docs/reference/admin-api.md#server).
import RockpoolCore
import Synchronization

/// The sources of the configuration in force, which a reload changes.
final class ConfigurationPlaces: Sendable {
    private let places: Mutex<[String: Place]>

    init(_ places: [String: Place]) { self.places = Mutex(places) }

    /// Applies a configuration, and takes its sources over if that succeeds.
    func follow<Outcome>(_ next: LoadedConfiguration, apply: (Configuration) async throws -> Outcome) async rethrows -> Outcome {
        let outcome = try await apply(next.configuration)
        places.withLock { $0 = next.places }
        return outcome
    }

    /// The items of `/v1/configuration/values`: `source` is null for a default.
    func values(of document: ConfigDocument?) -> [JSONValue] {
        let places = places.withLock { $0 }
        return (document?.scalars(at: .root) ?? []).map { name, value in
            ["key": .string(name), "value": value, "source": .optional(places[name]?.description)]
        }
    }
}

extension ConfigDocument {
    /// The scalars and the lists of scalars, each with the path of its key.
    func scalars(at path: KeyPathName) -> [(key: String, value: JSONValue)] {
        switch self {
        case .map(let members): members.flatMap { $0.value.scalars(at: path.key($0.name)) }
        case .list(let items) where items.contains(where: { if case .map = $0 { true } else { false } }):
            items.enumerated().flatMap { $1.scalars(at: path.item($0)) }
        default: [(path.text, plain)]
        }
    }

    private var plain: JSONValue {
        switch self {
        case .null: .null
        case .bool(let value): .bool(value)
        case .int(let value): .number(JSONNumber(Int64(value)))
        case .text(let text): .string(text)
        case .list(let items): .array(items.map(\.plain))
        case .map(let members): .object(JSONObject(members.map { ($0.name, $0.value.plain) }))
        }
    }
}
