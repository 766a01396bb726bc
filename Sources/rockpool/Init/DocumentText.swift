// Reads JSON and YAML documents as JSON values.
import Foundation
import RockpoolCore
import Yams

enum DocumentText {
    /// The most marks of YAML that may begin or end a node in a description of which nobody has said that it be read. Nodes cost far more
    /// time and memory than their bytes.
    private static let markLimit = 500_000

    /// The value of a description that an API has; nil also if it has more nodes than descriptions have.
    static func described(_ bytes: [UInt8]) -> JSONValue? {
        if let json = try? JSONValue.parse(bytes) { return json }
        guard bytes.count(where: { "\n,:-[{".utf8.contains($0) }) <= markLimit else { return nil }
        return value(of: bytes)
    }

    /// Nil if the text is neither JSON nor YAML, or if its aliases make it much larger than it is.
    static func value(of bytes: [UInt8]) -> JSONValue? {
        if let json = try? JSONValue.parse(bytes, sizeLimit: .mib(64)) { return json }
        guard let node = try? BoundedYAML.compose(String(decoding: bytes, as: UTF8.self)) else { return nil }
        return value(of: node)
    }

    private static func value(of node: Node) -> JSONValue {
        switch node {
        case .mapping(let mapping):
            .object(JSONObject(mapping.map { ($0.key.string ?? "", value(of: $0.value)) }))
        case .sequence(let sequence): .array(sequence.map(value))
        case .scalar(let scalar):
            switch node.tag.description {
            case "tag:yaml.org,2002:null": .null
            case "tag:yaml.org,2002:bool": .bool(node.bool ?? false)
            case "tag:yaml.org,2002:int": .number(JSONNumber(Int64(node.int ?? 0)))
            default: .string(scalar.string)
            }
        default: .null
        }
    }
}
