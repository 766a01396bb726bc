// RFC 4648 §5, with the vectors of §10 and invalid input.
import RockpoolCore
import Testing

struct Base64URLTests {
    @Test(arguments: [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("foobar", "Zm9vYmFy")])
    func theVectorsBothWays(text: String, encoded: String) {
        #expect(Base64URL.encoded(Array(text.utf8)) == encoded)
        #expect(Base64URL.decoded(encoded.utf8) == Array(text.utf8))
    }

    @Test func everyByteComesBack() {
        let bytes = (UInt8.min ... .max).map { $0 }
        for count in 254...256 { #expect(Base64URL.decoded(Base64URL.encoded(Array(bytes.suffix(count))).utf8) == bytes.suffix(count)) }
        #expect(Base64URL.encoded([0xFB, 0xFF]) == "-_8")
    }

    /// Padding, the other alphabet, a space, an impossible length, nonzero trailing bits.
    @Test(arguments: ["Zg==", "+/8", "Zm 9", "Z", "Zm9vY", "Zh", "Zm9", "Zé"])
    func whatIsNone(text: String) { #expect(Base64URL.decoded(text.utf8) == nil) }
}
