// The vectors of RFC 4648 §10, and invalid base64.
import RockpoolCore
import Testing

@Suite struct Base64Tests {
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
    func vectors(_ plain: String, _ text: String) {
        #expect(Base64.encode(Array(plain.utf8)) == text)
        #expect(Base64.decode(text) == Array(plain.utf8))
    }

    @Test func everyByteComesBack() {
        for count in 0..<4 {
            let bytes = (0...255).map { UInt8($0) } + Array(repeating: 255, count: count)
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
    }

    @Test(arguments: ["Z", "Zg", "Zg=", "Zg==Zg==", "Zh==", "Zm9=", "=Zg=", "Zm9v\n", "Zm-v", "====", "Zg=v"])
    func isRefused(_ text: String) { #expect(Base64.decode(text) == nil) }
}
