// Header fields as names and raw bytes, for tables of test cases.
import HTTPTypes

struct HTTPFieldsCase: Sendable, CustomStringConvertible {
    var pairs: [(String, [UInt8])]

    var fields: HTTPFields {
        HTTPFields(pairs.compactMap { name, value in HTTPField.Name(name).map { HTTPField(name: $0, lenientValue: value) } })
    }

    var description: String { pairs.map { "\($0.0): \($0.1.count) bytes" }.joined(separator: ", ") }
}
