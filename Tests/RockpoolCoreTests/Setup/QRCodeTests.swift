// QR codes, against codes that another program (qrcode of Python) has made of the same texts.
import RockpoolCore
import Testing

@Suite struct QRCodeTests {
    private static func digest(_ code: QRCode) -> UInt64 {
        code.modules.joined().reduce(0) { UInt64((UInt128($0) * 31 + ($1 ? 1 : 0) + 7) % ((UInt128(1) << 61) - 1)) }
    }

    @Test(arguments: [
        ("a", 21, 941_889_262_244_423_219 as UInt64), ("http://rockpool.local/", 25, 1_309_899_320_645_472_372),
        ("http://192.168.100.200:7626/setup" + String(repeating: "x", count: 60), 37, 683_188_154_820_186_345),
    ])
    func codesAreThoseOfAnotherProgram(text: String, size: Int, digest: UInt64) throws {
        let code = try #require(QRCode(text))
        #expect(code.size == size && Self.digest(code) == digest)
    }

    @Test func aLongTextHasNone() {
        #expect(QRCode(String(repeating: "x", count: 106)) != nil && QRCode(String(repeating: "x", count: 107)) == nil)
    }
}
