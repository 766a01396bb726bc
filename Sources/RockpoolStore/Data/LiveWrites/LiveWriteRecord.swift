// A live write as bytes: what its slot of the file `live-writes` holds (docs/outbox.md#live-writes).
import CZlib
import GRDB
import RockpoolCore

/// The content of one slot: `magic | length | CRC-32 | token | values`, numbers little-endian. The checksum is over the token and the values;
/// a slot that was not written whole has no record.
struct LiveWriteRecord: Equatable, Sendable {
    private static let magic: UInt32 = 0x3177_6C52
    /// Bytes before the values.
    static let headLength = 20

    /// Names this use of the slot.
    let token: Int64
    /// The values of its row, sealed as `storage.encrypt` demands.
    let values: [UInt8]

    init(token: Int64, values: [UInt8]) { (self.token, self.values) = (token, values) }

    /// - Returns: nil if the slot holds no whole record.
    init?(_ slot: ArraySlice<UInt8>) {
        func number(at place: Int, of count: Int) -> UInt64 {
            (0..<count).reduce(0) { $0 | UInt64(slot[slot.startIndex + place + $1]) << UInt64(8 * $1) }
        }
        guard slot.count >= Self.headLength, number(at: 0, of: 4) == UInt64(Self.magic) else { return nil }
        let length = Int(number(at: 4, of: 4))
        guard length <= slot.count - Self.headLength else { return nil }
        token = Int64(bitPattern: number(at: 12, of: 8))
        values = Array(slot.dropFirst(Self.headLength).prefix(length))
        guard Self.checksum(token, values) == UInt32(truncatingIfNeeded: number(at: 8, of: 4)) else { return nil }
    }

    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.headLength + values.count)
        for number in [Self.magic, UInt32(values.count), Self.checksum(token, values)] {
            unsafe withUnsafeBytes(of: number.littleEndian) { unsafe bytes.append(contentsOf: $0) }
        }
        unsafe withUnsafeBytes(of: token.littleEndian) { unsafe bytes.append(contentsOf: $0) }
        bytes += values
        return bytes
    }

    private static func checksum(_ token: Int64, _ values: [UInt8]) -> UInt32 {
        let head = unsafe withUnsafeBytes(of: token.littleEndian) { bytes in
            unsafe crc32(0, bytes.bindMemory(to: UInt8.self).baseAddress, uInt(bytes.count))
        }
        return UInt32(truncatingIfNeeded: unsafe values.withUnsafeBufferPointer { unsafe crc32(head, $0.baseAddress, uInt($0.count)) })
    }
}
