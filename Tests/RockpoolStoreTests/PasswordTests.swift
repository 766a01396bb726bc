// Hashes of passwords that other programs made, and the file with them.
import Foundation
import RockpoolCore
import RockpoolStore
import Testing

@Suite struct PasswordTests {
    /// By `openssl passwd -5`, `openssl passwd -6` and `htpasswd -B`.
    private static let hashes = [
        #"$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA"#,
        #"$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1"#,
        #"$2y$05$PoAYHW2dx6ARHgF9RiUw4O1/wLTaRIlP3r/hawk/21F4BxIcUT.qS"#,
    ]

    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func book(_ text: String, mode: Int = 0o600) throws -> (book: PasswordBook, path: String) {
        let path = scratch.path + "/passwords"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return (PasswordBook(path), path)
    }

    private func known(_ name: String, _ password: String) throws -> NameAndPassword {
        try #require(NameAndPassword(name: name, password: password))
    }

    @Test(arguments: hashes) func hashesOfOtherPrograms(hash: String) throws {
        let book = try book("ann:\(hash)\n").book
        let right = try known("ann", "secret")
        #expect(!book.isProved(right))
        #expect(book.verify(right) && book.isProved(right))
        for wrong in [try known("ann", "Secret"), try known("ann", "secret "), try known("bob", "secret")] {
            #expect(!book.verify(wrong) && !book.isProved(wrong))
        }
    }

    @Test func aNewHashIsSalted() throws {
        let (one, two) = (try #require(PasswordHash.make(of: "secret")), try #require(PasswordHash.make(of: "secret")))
        #expect(one != two && one.hasPrefix("$6$rounds=100000$"))
        #expect(try book("ann:\(one)\n").book.verify(try known("ann", "secret")))
    }

    @Test func aChangedFileAppliesAtOnce() throws {
        let (book, path) = try book("ann:\(Self.hashes[0])\n")
        let right = try known("ann", "secret")
        #expect(book.verify(right))
        try Data("bob:\(Self.hashes[0])\n".utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
        #expect(!book.isProved(right) && !book.verify(right))
        #expect(book.verify(try known("bob", "secret")))
        try FileManager.default.removeItem(atPath: path)
        let bob = try known("bob", "secret")
        #expect(!book.isProved(bob) && !book.verify(bob))
    }

    @Test func othersMustNotWriteIt() throws {
        let path = try book("ann:\(Self.hashes[0])\n", mode: 0o644).path
        #expect(try PasswordBook.read(path).hashes.count == 1)
        for mode in [0o620, 0o602] {
            let path = try book("ann:\(Self.hashes[0])\n", mode: mode).path
            #expect(throws: PasswordLines.Fault.self) { try PasswordBook.read(path) }
        }
    }
}
