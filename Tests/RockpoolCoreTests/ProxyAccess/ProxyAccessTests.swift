// Names and passwords of the proxy's clients, the file with their hashes, and the limit on attempts.
import RockpoolCore
import Testing

@Suite struct ProxyAccessTests {
    @Test(
        arguments: [
            ("Basic YW5uOnNlY3JldA==", "ann secret"), ("basic  YW5uOnNlY3JldA==", "ann secret"), ("Basic YW5uOmE6Yg==", "ann a:b"),
            ("Bearer YW5uOnNlY3JldA==", nil), ("Basic", nil), ("Basic YW5u", nil), ("Basic OnNlY3JldA==", nil), ("Basic YW5uOg==", nil),
            ("Basic YW5uOnNlY3JldA", nil), ("Basic YW5uOgA=", nil), ("Basic YW5uOnNlY3JldA== x", nil),
        ] as [(String, String?)])
    func credentials(value: String, expected: String?) {
        #expect(NameAndPassword(basic: value).map { "\($0.name) \($0.password)" } == expected)
    }

    @Test func overlongPasswordsAreNotCompared() {
        #expect(NameAndPassword(name: "ann", password: String(repeating: "x", count: 512)) != nil)
        #expect(NameAndPassword(name: "ann", password: String(repeating: "x", count: 513)) == nil)
    }

    @Test func linesOfAFile() throws {
        let lines = try PasswordLines("# people\n\nann:$6$salt$hash\r\n bob:$2y$05$hash \n")
        #expect(lines.hashes == ["ann": "$6$salt$hash", "bob": "$2y$05$hash"])
    }

    @Test(
        arguments: [
            ("ann", "line 1 is not name:hash"), (":$6$x$y", "line 1 is not name:hash"), ("\nann:secret", "line 2 has no hash"),
            ("ann:$apr1$x$y", "no hash by bcrypt"), ("ann:{SHA}x", "no hash by bcrypt"), ("ann:$1$x$y", "no hash by bcrypt"),
            ("ann:$6$x$y\nann:$6$x$z", "line 2 names ann again"),
        ])
    func wrongLines(text: String, expected: String) {
        let fault = #expect(throws: PasswordLines.Fault.self) { try PasswordLines(text) }
        #expect(fault?.description.contains(expected) == true, "\(fault?.description ?? "")")
    }

    @Test func oneLineIsReplaced() {
        let text = "# people\nann:1\nbob:2\n"
        #expect(PasswordLines.replacing("ann", by: "3", in: text) == "# people\nann:3\nbob:2\n")
        #expect(PasswordLines.replacing("eve", by: "3", in: text) == text + "eve:3\n")
        #expect(PasswordLines.replacing("bob", by: nil, in: text) == "# people\nann:1\n")
        #expect(PasswordLines.replacing("ann", by: "1", in: "") == "ann:1\n")
    }

    @Test func attemptsAreLimitedPerClientAndWindow() {
        var limit = AttemptLimit()
        let start = Timestamp(seconds: 1_000_000)
        for _ in 0..<AttemptLimit.attempts {
            #expect(limit.begin("a", now: start) == nil)
            limit.end("a", isRight: false)
        }
        #expect(limit.begin("a", now: start + .seconds(20)) == .seconds(40))
        #expect(limit.begin("b", now: start) == nil)
        limit.end("b", isRight: false)
        #expect(limit.begin("a", now: start + AttemptLimit.window) == nil)
        limit.end("a", isRight: false)
        // The clock was set back.
        #expect(limit.begin("b", now: start - .days(1)) == nil)
    }

    @Test func rightPasswordsAreNotCounted() {
        var limit = AttemptLimit()
        for second in 0..<Int64(50) {
            #expect(limit.begin("a", now: Timestamp(seconds: second)) == nil)
            limit.end("a", isRight: true)
        }
    }

    @Test func fewAttemptsWaitAtOnce() {
        var limit = AttemptLimit()
        for number in 0..<AttemptLimit.waiting { #expect(limit.begin("\(number)", now: .distantPast) == nil) }
        #expect(limit.begin("more", now: .distantPast) == .seconds(1))
        limit.end("0", isRight: false)
        #expect(limit.begin("more", now: .distantPast) == nil)
    }

    /// A crowd of addresses does not grow the table without limit.
    @Test func clientsAreLimited() {
        var limit = AttemptLimit()
        for number in 0..<4000 {
            #expect(limit.begin("\(number)", now: .distantPast) == nil)
            limit.end("\(number)", isRight: false)
        }
        #expect(limit.begin("more", now: .distantPast) == AttemptLimit.window)
        #expect(limit.begin("more", now: .distantPast + AttemptLimit.window) == nil)
    }
}
