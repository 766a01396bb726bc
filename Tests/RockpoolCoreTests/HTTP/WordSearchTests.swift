// The search of words in heads and bodies.
import Testing

@testable import RockpoolCore

@Suite struct WordSearchTests {
    @Test(arguments: [
        ("gzip", true), ("GZip, br", true), ("br;q=1, gzip", true), ("gzi", false), ("", false), ("ggzip", true), ("g zip", false),
        ("gzigzip", true),
    ])
    func findsInAnyCase(_ text: String, _ isFound: Bool) { #expect(text.contains(anyCase: "gzip") == isFound) }

    @Test func findsBytesAsTheyAre() {
        #expect(Array("a query".utf8).holds("query") && !Array("a Query".utf8).holds("query"))
        #expect(![UInt8]().holds("query") && [UInt8]().holds(""))
    }

    /// Only letters differ by case.
    @Test func keepsOtherBytesApart() {
        #expect(!"@[".contains(anyCase: "`{"))
        #expect("no-TRANSFORM".contains(anyCase: "no-transform"))
    }
}
