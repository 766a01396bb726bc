// Headers of tar archives (POSIX.1-1988 ustar, IEEE Std 1003.1 *pax*): the form of a backup, so that any tar can read it.

/// One entry of an archive: a regular file.
struct TarHeader: Hashable, Sendable {
    static let block = 512
    var name: String
    var size: Int64

    /// Bytes after the content up to the next block.
    static func padding(after size: Int64) -> Int { Int((Int64(block) - size % Int64(block)) % Int64(block)) }

    /// The block of the header. The name has at most 100 bytes, and the file less than 8 GiB.
    var bytes: [UInt8] {
        var block = [UInt8](repeating: 0, count: Self.block)
        func put(_ text: String, at offset: Int) {
            for (index, byte) in text.utf8.enumerated() { block[offset + index] = byte }
        }
        func octal(_ value: Int64, digits: Int) -> String {
            let text = String(value, radix: 8)
            return String(repeating: "0", count: max(0, digits - text.count)) + text
        }
        put(name, at: 0)
        put(octal(0o600, digits: 7), at: 100)
        put(octal(0, digits: 7), at: 108)
        put(octal(0, digits: 7), at: 116)
        put(octal(size, digits: 11), at: 124)
        put(octal(0, digits: 11), at: 136)
        put("        ", at: 148)
        put("0", at: 156)
        put("ustar", at: 257)
        put("00", at: 263)
        put(octal(block.reduce(0) { $0 + Int64($1) }, digits: 6) + "\0 ", at: 148)
        return block
    }

    init(name: String, size: Int64) {
        self.name = name
        self.size = size
    }

    /// Nil for a block that is no header of a regular file, or whose sum is wrong.
    init?(_ block: ArraySlice<UInt8>) {
        let block = Array(block)
        guard block.count == Self.block else { return nil }
        func text(at offset: Int, _ count: Int) -> String {
            String(decoding: block[offset..<offset + count].prefix { $0 != 0 && $0 != UInt8(ascii: " ") }, as: UTF8.self)
        }
        let sum = block.enumerated().reduce(Int64(0)) { $0 + ((148..<156).contains($1.offset) ? 32 : Int64($1.element)) }
        guard Int64(text(at: 148, 8), radix: 8) == sum, block[156] == UInt8(ascii: "0") || block[156] == 0,
            let size = Int64(text(at: 124, 12), radix: 8)
        else { return nil }
        (name, self.size) = (text(at: 0, 100), size)
    }
}
