// The labelled digest of a record's payload: `sha256:…`, in base 16 or base 32 (ISO 28500:2017 §5.8; RFC 4648).

/// A digest as stated in a record.
package struct PayloadDigest: Hashable, Sendable {
    /// Algorithms that can be compared, with the length of their values.
    package enum Algorithm: String, CaseIterable, Sendable {
        case sha1, sha256

        /// Bytes.
        var length: Int { self == .sha1 ? 20 : 32 }
    }

    package var algorithm: Algorithm
    package var value: [UInt8]

    /// A computed digest.
    package init(_ algorithm: Algorithm, _ value: [UInt8]) {
        self.algorithm = algorithm
        self.value = value
    }

    /// Parses `algorithm:value` with the value in base 16 or base 32. Nil for unknown algorithms and values of another length.
    package init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, let algorithm = Algorithm(rawValue: parts[0].lowercased().replacing("-", with: "")) else { return nil }
        let digits = parts[1].uppercased()
        guard let value = Self.bytes(of: digits, of: algorithm) else { return nil }
        self.init(algorithm, value)
    }

    /// `sha256:` and lower-case base 16.
    package var text: String {
        let digits = Array("0123456789abcdef".utf8)
        let hex = value.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        return "\(algorithm.rawValue):\(String(decoding: hex, as: UTF8.self))"
    }

    private static func bytes(of digits: String, of algorithm: Algorithm) -> [UInt8]? {
        let (alphabet, bits) = digits.utf8.count == algorithm.length * 2 ? ("0123456789ABCDEF", 4) : ("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 5)
        let places = Dictionary(uniqueKeysWithValues: alphabet.utf8.enumerated().map { ($1, $0) })
        var (bytes, held, count): ([UInt8], Int, Int) = ([], 0, 0)
        for digit in digits.utf8 where digit != UInt8(ascii: "=") {
            guard let place = places[digit], bytes.count <= algorithm.length else { return nil }
            held = (held << bits | place) & 0xFFF
            count += bits
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: held >> count))
            }
        }
        return bytes.count == algorithm.length ? bytes : nil
    }
}
