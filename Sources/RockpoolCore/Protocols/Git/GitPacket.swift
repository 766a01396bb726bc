// The packets in which git's programs talk (https://git-scm.com/docs/gitprotocol-common).

/// One packet.
package enum GitPacket: Hashable, Sendable {
    /// Of a text, without the line feed at its end.
    case data([UInt8])
    case flush, delimiter, end

    /// The largest packet, its length included.
    package static let limit = 65_520

    /// The packets of a message; nil if it is none.
    package static func all(in bytes: [UInt8]) -> [GitPacket]? {
        var (packets, index) = ([GitPacket](), 0)
        while index < bytes.count {
            guard let length = length(in: bytes[index...]) else { return nil }
            switch length {
            case 0: packets.append(.flush)
            case 1: packets.append(.delimiter)
            case 2: packets.append(.end)
            case 4...:
                guard index + length <= bytes.count else { return nil }
                var data = bytes[(index + 4)..<(index + length)]
                if data.last == 0x0A { data.removeLast() }
                packets.append(.data(Array(data)))
            default: return nil
            }
            index += max(4, length)
        }
        return packets
    }

    /// The length that the first four bytes of a packet say; nil if they are not there, or are none.
    package static func length(in bytes: some Collection<UInt8>) -> Int? {
        let digits = bytes.prefix(4)
        guard digits.count == 4 else { return nil }
        return digits.reduce(0 as Int?) { value, digit in
            guard let value, let next = Character(Unicode.Scalar(digit)).hexDigitValue else { return nil }
            return value * 16 + next
        }
    }

    /// A packet with a line of text.
    package static func line(_ text: String) -> [UInt8] { GitPacket.data(Array(text.utf8)).bytes }

    /// The packet as it is sent, with the line feed at the end of its data.
    package var bytes: [UInt8] {
        switch self {
        case .data(let data): Self.length(data.count + 5) + data + [0x0A]
        case .flush: Self.flushBytes
        case .delimiter: Self.delimiterBytes
        case .end: Array("0002".utf8)
        }
    }

    /// The beginning of a packet of `count` bytes, its own four included.
    package static func length(_ count: Int) -> [UInt8] {
        let digits = String(count, radix: 16)
        return Array((String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits).utf8)
    }

    package static let flushBytes = Array("0000".utf8)
    package static let delimiterBytes = Array("0001".utf8)

    /// The text of a packet of data; nil for any other.
    var text: String? { if case .data(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { nil } }
}
