// Reads a corpus file by lines, so that people can write one and the fuzzer's crossovers are meaningful.
import HTTPTypes

/// Bytes as lines, without their ends.
struct FuzzInput {
    private let lines: [ArraySlice<UInt8>]

    init(_ bytes: [UInt8]) {
        lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { $0.last == 0x0D ? $0.dropLast() : $0 }
    }

    /// The line at `index`, from 0; empty beyond the last line.
    func bytes(_ index: Int) -> [UInt8] { index < lines.count ? Array(lines[index]) : [] }

    /// The line as text.
    func text(_ index: Int) -> String { String(decoding: bytes(index), as: UTF8.self) }

    /// The line as a number; 0 if it is none.
    func number(_ index: Int) -> Int64 { Int64(text(index)) ?? 0 }

    /// All bytes from a line on.
    func rest(_ index: Int) -> [UInt8] { Array(lines.dropFirst(index).joined(separator: [0x0A])) }

    /// The field lines from `index` up to an empty line, and the index after that. Malformed lines are skipped.
    func fields(_ index: Int) -> (fields: HTTPFields, next: Int) {
        var fields = HTTPFields()
        for (place, line) in lines.enumerated().dropFirst(index) {
            if line.isEmpty { return (fields, place + 1) }
            if let field = HTTPField(line: line) { fields.append(field) }
        }
        return (fields, lines.count)
    }
}

extension HTTPField {
    /// Splits at the first colon only; nil if the name is no token or the value has a control character, as in every decoder.
    init?(line: ArraySlice<UInt8>) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
            let name = Name(String(decoding: line[..<colon], as: UTF8.self))
        else { return nil }
        var value = line[(colon + 1)...]
        while value.first == 0x20 || value.first == 0x09 { value.removeFirst() }
        while value.last == 0x20 || value.last == 0x09 { value.removeLast() }
        guard value.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else { return nil }
        self.init(name: name, lenientValue: value)
    }
}
