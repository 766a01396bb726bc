// Reads JSON and YAML documents as JSON values.
import Foundation
import RockpoolCore
import Yams

enum DocumentText {
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
