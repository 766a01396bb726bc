// Keys, identifiers and redirects as text.
import RockpoolCore
import Testing

@Suite struct NamesTests {
    @Test(arguments: [("abc", #""abc""#), (#"a"b\c"#, #""a\"b\\c""#), ("\"\u{301}", "\"\\\"\u{301}\"")])
    func quotedKeys(_ key: String, _ field: String) {
        #expect(IdempotencyKey.fieldValue(key, format: .quoted) == field)
        #expect(IdempotencyKey.fieldValue(key, format: .raw) == key)
        #expect(IdempotencyKey.parse(field) == key)
    }

    @Test(arguments: [
        ("raw", String?.some("raw")), ("", nil), (#""""#, nil), ("\"", "\""), (#""a"b"#, #""a"b"#), (#""a\"#, #""a\"#),
        (#""a";v=1"#, #""a";v=1"#),
    ])
    func readKeys(_ field: String, _ key: String?) { #expect(IdempotencyKey.parse(field) == key) }

    @Test func uuidsSortByTime() {
        let uuid = UUIDv7.make(now: Timestamp(milliseconds: 0x0123_4567_89AB), random: (.max, .max))
        #expect(uuid == "01234567-89ab-7fff-bfff-ffffffffffff")
        #expect(UUIDv7.make(now: noon, random: (0, 0)) == "01a3185c-5000-7000-8000-000000000000")
        #expect(UUIDv7.make(now: noon, random: (.max, .max)) < UUIDv7.make(now: noon + .milliseconds(1), random: (0, 0)))
        #expect(UUIDv7.make(now: Timestamp(milliseconds: -5), random: (0, 0)).hasPrefix("00000000-0000-7"))
    }

    @Test(arguments: [
        ("/x?y#f", RedirectTarget.sameOrigin(target: "/x?y")), ("18", .sameOrigin(target: "/v1/notes/18")),
        ("?z", .sameOrigin(target: "/v1/notes/17?z")), ("", .sameOrigin(target: "/v1/notes/17?x=1")),
        ("https://API.example.com/a", .sameOrigin(target: "/a")), ("https://api.example.com:443", .sameOrigin(target: "/")),
        ("https://u@api.example.com/a", .sameOrigin(target: "/a")), ("http://api.example.com/a", .sameHost),
        ("//api.example.com:8443/", .sameHost), ("https://portal.example/a", .otherHost("portal.example")),
        ("//portal/", .otherHost("portal")), ("https://api.example.com@evil/", .otherHost("evil")), ("https://[::1]:3/", .otherHost("::1")),
        ("/a:b", .sameOrigin(target: "/a:b")), ("::", .sameOrigin(target: "/v1/notes/::")), ("mailto:a@b", .otherScheme),
        ("notes:open", .otherScheme),
    ])
    func redirects(_ location: String, _ target: RedirectTarget) {
        #expect(RedirectTarget(location, from: operation().request) == target)
    }

    @Test(arguments: TransferFailure.Kind.allCases) func failuresHaveNamesOfRFC9209(_ kind: TransferFailure.Kind) {
        let registered = [
            "dns_error", "connection_refused", "connection_timeout", "tls_certificate_error", "connection_terminated",
            "connection_read_timeout", "http_protocol_error", "destination_ip_prohibited", "destination_unavailable",
            "proxy_internal_error",
        ]
        #expect(registered.contains(TransferFailure(kind: kind, sent: .no).proxyErrorName))
    }
}
