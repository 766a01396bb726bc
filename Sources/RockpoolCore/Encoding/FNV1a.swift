// FNV-1a in 64 bits: numbers for names, the same at every start, without any security purpose.

/// The hash of the bytes that were added so far.
package struct FNV1a: Sendable {
    package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    package init() {}

    package mutating func add(_ bytes: some Sequence<UInt8>) { for byte in bytes { add(byte) } }

    package mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x100_0000_01B3 }
}
