// A QR code of a short text: byte mode, versions 1 to 5, error correction level L, mask 0 (ISO/IEC 18004).

/// The modules of a code; true is dark.
package struct QRCode: Hashable, Sendable {
    /// Codewords of data and of error correction by version, each in one block.
    private static let codewords: [(data: Int, correction: Int)] = [(19, 7), (34, 10), (55, 15), (80, 20), (108, 26)]

    /// Modules of a side.
    package let size: Int
    /// The rows.
    package private(set) var modules: [[Bool]]
    /// True for modules that hold no data.
    private var isFixed: [[Bool]]

    /// Nil for a text of more than 106 bytes.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let index = Self.codewords.firstIndex(where: { bytes.count <= $0.data - 2 }) else { return nil }
        size = 21 + 4 * index
        modules = Array(repeating: Array(repeating: false, count: size), count: size)
        isFixed = modules
        drawPatterns(version: index + 1)
        let data = Self.data(bytes, count: Self.codewords[index].data)
        draw(data + Self.correction(of: data, count: Self.codewords[index].correction))
    }

    /// The text with its header and padding (§7.4).
    private static func data(_ bytes: [UInt8], count: Int) -> [UInt8] {
        // The mode and the length take 12 bits, so that every byte is split into halves.
        var halves: [UInt8] = [0b0100, UInt8(bytes.count >> 4), UInt8(bytes.count & 15)]
        for byte in bytes {
            halves.append(byte >> 4)
            halves.append(byte & 15)
        }
        halves.append(0)
        var words: [UInt8] = []
        for index in stride(from: 0, to: halves.count, by: 2) { words.append(halves[index] << 4 | halves[index + 1]) }
        var pad: UInt8 = 0xEC
        while words.count < count {
            words.append(pad)
            pad = pad == 0xEC ? 0x11 : 0xEC
        }
        return Array(words.prefix(count))
    }

    // MARK: error correction

    /// The Reed-Solomon remainder over GF(2^8) with the polynomial 0x11D (§7.5).
    private static func correction(of data: [UInt8], count: Int) -> [UInt8] {
        var divisor = [UInt8](repeating: 0, count: count - 1) + [1]
        var root: UInt8 = 1
        for _ in 0..<count {
            for index in divisor.indices {
                divisor[index] = product(divisor[index], root) ^ (index + 1 < count ? divisor[index + 1] : 0)
            }
            root = product(root, 2)
        }
        var remainder = [UInt8](repeating: 0, count: count)
        for byte in data {
            let factor = byte ^ remainder.removeFirst()
            remainder.append(0)
            for index in remainder.indices { remainder[index] ^= product(divisor[index], factor) }
        }
        return remainder
    }

    private static func product(_ a: UInt8, _ b: UInt8) -> UInt8 {
        var result = 0
        for bit in stride(from: 7, through: 0, by: -1) {
            result = result << 1 ^ (result >> 7) * 0x11D
            result ^= (Int(b) >> bit & 1) * Int(a)
        }
        return UInt8(truncatingIfNeeded: result)
    }

    // MARK: modules

    private mutating func fix(_ row: Int, _ column: Int, isDark: Bool) {
        guard (0..<size).contains(row), (0..<size).contains(column) else { return }
        modules[row][column] = isDark
        isFixed[row][column] = true
    }

    private mutating func drawPatterns(version: Int) {
        for index in 0..<size {
            fix(6, index, isDark: index % 2 == 0)
            fix(index, 6, isDark: index % 2 == 0)
        }
        for (row, column) in [(3, 3), (3, size - 4), (size - 4, 3)] {
            for (dy, dx) in Self.square(4) { fix(row + dy, column + dx, isDark: ![2, 4].contains(max(abs(dy), abs(dx)))) }
        }
        if version > 1 {
            for (dy, dx) in Self.square(2) { fix(size - 7 + dy, size - 7 + dx, isDark: max(abs(dy), abs(dx)) != 1) }
        }
        drawFormat()
    }

    private static func square(_ radius: Int) -> [(Int, Int)] {
        (-radius...radius).flatMap { dy in (-radius...radius).map { (dy, $0) } }
    }

    /// Level L and mask 0, twice (§7.9).
    private mutating func drawFormat() {
        let format = 0b111_0111_1100_0100
        let bit = { (index: Int) in format >> index & 1 == 1 }
        for index in 0..<6 { fix(index, 8, isDark: bit(index)) }
        fix(7, 8, isDark: bit(6))
        fix(8, 8, isDark: bit(7))
        fix(8, 7, isDark: bit(8))
        for index in 9..<15 { fix(8, 14 - index, isDark: bit(index)) }
        for index in 0..<8 { fix(8, size - 1 - index, isDark: bit(index)) }
        for index in 8..<15 { fix(size - 15 + index, 8, isDark: bit(index)) }
        fix(size - 8, 8, isDark: true)
    }

    /// Places the bits in pairs of columns from the right, upwards and downwards in turn (§7.7.3), under mask 0.
    private mutating func draw(_ words: [UInt8]) {
        var index = 0
        var right = size - 1
        while right > 0 {
            if right == 6 { right = 5 }
            for step in 0..<size {
                for column in [right, right - 1] {
                    let isUpwards = (right + 1) & 2 == 0
                    let row = isUpwards ? size - 1 - step : step
                    guard !isFixed[row][column] else { continue }
                    let isSet = index < words.count * 8 && words[index / 8] >> (7 - index % 8) & 1 == 1
                    index += 1
                    modules[row][column] = isSet != ((row + column) % 2 == 0)
                }
            }
            right -= 2
        }
    }

    /// The code as an image with the quiet zone of four modules.
    package var svg: String {
        var path = ""
        for (row, line) in modules.enumerated() {
            for (column, isDark) in line.enumerated() where isDark { path += "M\(column + 4) \(row + 4)h1v1h-1z" }
        }
        let side = size + 8
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 \(side) \(side)\" width=\"220\" height=\"220\" role=\"img\" "
            + "aria-label=\"QR code of this page\"><rect width=\"\(side)\" height=\"\(side)\" fill=\"#fff\"/><path d=\"\(path)\"/></svg>"
    }
}
