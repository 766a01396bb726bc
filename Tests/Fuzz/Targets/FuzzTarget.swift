// The fuzz targets: the parsers of untrusted bytes, and the properties that hold for every input (docs/security-model.md#fuzzing R3).

/// One parser of untrusted bytes with its properties. The fuzzer generates the bytes (`make fuzz`), the tests read them from `Tests/Fuzz/corpus`.
package enum FuzzTarget: String, CaseIterable, Sendable {
    case requestHead = "request-head"
    case uri
    case chunks
    case responseHead = "response-head"
    case cacheControl = "cache-control"
    case freshness
    case structured
    case varyKey = "vary-key"
    case range
    case dates
    case json
    case patch
    case merge
    case localIDs = "local-ids"
    case warc
    case xml
    case configuration

    /// Passes `bytes` through the target's parser; throws the first violated property.
    package func run(_ bytes: [UInt8]) throws(BrokenProperty) {
        let input = FuzzInput(bytes)
        switch self {
        case .requestHead: try Self.requestHead(bytes)
        case .uri: try Self.uri(input)
        case .chunks: try Self.chunks(bytes)
        case .responseHead: try Self.responseHead(bytes)
        case .cacheControl: try Self.cacheControl(input)
        case .freshness: try Self.freshness(input)
        case .structured: try Self.structured(input)
        case .varyKey: try Self.varyKey(input)
        case .range: try Self.range(input)
        case .dates: try Self.dates(input)
        case .json: try Self.json(bytes)
        case .patch: try Self.patch(input)
        case .merge: try Self.merge(input)
        case .localIDs: try Self.localIDs(input)
        case .warc: try Self.warc(bytes)
        case .xml: try Self.xml(bytes)
        case .configuration: try Self.configuration(input, bytes)
        }
    }
}
