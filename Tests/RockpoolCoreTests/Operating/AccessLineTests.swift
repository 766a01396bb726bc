// The content of the access log, and data that is never logged.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct AccessLineTests {
    private func line(_ url: String, bytes: Int64 = 5) -> AccessLine {
        AccessLine(
            at: Timestamp(milliseconds: 784_111_777_250), method: "GET", url: url, status: 200, bytes: bytes, seconds: 0.0012345,
            verdict: "hit",
            cacheStatus: "rockpool; hit; ttl=5", error: nil)
    }

    @Test(arguments: [
        ("http://a.test/x", "http://a.test/x"),
        ("http://a.test/x?q=1&token=abc&page=2", "http://a.test/x?q=1&token=REDACTED&page=2"),
        ("http://a.test/x?access_token=a=b&X-Amz-Signature=c", "http://a.test/x?access_token=REDACTED&X-Amz-Signature=REDACTED"),
        ("http://a.test/x?key=1&monkey=2&keyword=3", "http://a.test/x?key=REDACTED&monkey=2&keyword=3"),
        ("http://a.test/x?API_KEY=1&Password=", "http://a.test/x?API_KEY=REDACTED&Password=REDACTED"),
        ("http://a.test/x?%74oken=1", "http://a.test/x?%74oken=REDACTED"),
        ("http://a.test/x?token&&=1#access_token=2", "http://a.test/x?token&&=1"),
        ("http://ann:sea@horse@a.test/x@y?z=p@q", "http://a.test/x@y?z=p@q"), ("ann:sea@a.test:443", "a.test:443"),
        ("/x@y?u=http://b:c@d", "/x@y?u=http://REDACTED@d"), ("http://a.test?x=b@c", "http://a.test?x=b@c"),
        ("/x?back=/y?token=abc&q=1", "/x?back=/y?token=REDACTED&q=1"), ("/a&token=1", "/a&token=1"),
    ]) func secretParametersAreRedacted(_ url: String, _ shown: String) {
        #expect(SecretParameters.redacted(url: url) == shown)
        #expect(line(url).text(.json)?.contains(shown) == true && line(url).text(.common)?.contains(shown) == true)
    }

    /// Where a field holds URLs, whatever its name and around them.
    @Test(arguments: [
        ("https://a.test/x?token=abc", "https://a.test/x?token=REDACTED"), ("https://ann:abc@a.test/", "https://REDACTED@a.test/"),
        ("https://a.test/#access_token=abc&state=1", "https://a.test/#access_token=REDACTED&state=1"),
        ("5; url=https://a.test/x?q=1&sig=abc", "5; url=https://a.test/x?q=1&sig=REDACTED"),
        ("<https://a.test/?p=2>; rel=next, </b?token=abc&q=1>; rel=a", "<https://a.test/?p=2>; rel=next, </b?token=REDACTED&q=1>; rel=a"),
        ("<a?x=1>,<b?key=abc>;title=\"a?b\"", "<a?x=1>,<b?key=REDACTED>;title=\"a?b\""),
        ("\"a:b@c\", W/\"1?2&3\"", "\"a:b@c\", W/\"1?2&3\""),
        ("text/html; charset=utf-8", "text/html; charset=utf-8"), ("why? a&key=abc", "why? a&key=abc"),
    ]) func secretsOfURLsInFieldsAreRedacted(_ value: String, _ shown: String) throws {
        let name = try #require(HTTPField.Name("X-Any"))
        let fields: HTTPFields = [.authorization: "abc", .setCookie: "abc", name: value]
        #expect(SecretFields.shown(fields) == [name: shown])
        #expect(SecretFields.shown(fields, withSecrets: true) == [name: value])
        #expect(SecretFields.occur(in: [name: value]) == (value != shown))
        #expect(SecretParameters.areHidden(in: Array(shown.utf8)) == (value != shown))
    }

    /// Bytes that are not UTF-8 stay as they are around a secret.
    @Test func secretsAmongOtherBytesAreRedacted() throws {
        let name = try #require(HTTPField.Name("X-Any"))
        let fields = HTTPFields([HTTPField(name: name, lenientValue: [0xE9] + Array("?key=a".utf8) + [0xE9] + Array("&q=".utf8) + [0xE9])])
        let shown = try #require(SecretFields.shown(fields).first?.valueBytes)
        #expect(shown == [0xE9] + Array("?key=REDACTED&q=".utf8) + [0xE9])
    }

    /// What an editor was shown is put back where it was left as it is.
    @Test(arguments: [
        ("/x?token=REDACTED&q=2", "/x?token=a&q=2"), ("/x?q=2&token=new", "/x?q=2&token=new"),
        ("http://a.test/y?key=REDACTED&key=REDACTED&key=REDACTED", "http://a.test/y?key=b&key=c&key=REDACTED"),
        ("/x?sig=REDACTED", "/x?sig=REDACTED"), ("/x", "/x"),
    ]) func shownSecretsAreRestored(_ edited: String, _ meant: String) {
        #expect(SecretParameters.restored(edited, from: "/x?token=a&q=1&key=b&key=c") == meant)
        #expect(SecretParameters.occur(in: edited) == edited.contains("="))
    }

    @Test func namesOfTheConfigurationAreSecretsToo() {
        #expect(SecretParameters.redacted(url: "/x?Planted-Name=1") == "/x?Planted-Name=1")
        SecretParameters.add(["planted-NAME"])
        #expect(SecretParameters.redacted(url: "/x?Planted-Name=1&planted=2") == "/x?Planted-Name=REDACTED&planted=2")
        #expect(SecretParameters.replacing(in: "/x?a=1&b=2", where: { $0 == "b" }) { _, _ in "-" } == "/x?a=1&b=-")
    }

    @Test func eachFormatIsOneLine() throws {
        #expect(line("http://a.test/x").text(.off) == nil)
        #expect(line("http://a.test/x").text(.common) == #"- - - [06/Nov/1994:08:49:37 +0000] "GET http://a.test/x HTTP/1.1" 200 5"#)
        #expect(line("http://a.test/\"\\", bytes: 0).text(.common)?.hasSuffix(#""GET http://a.test/\"\\ HTTP/1.1" 200 0"#) == true)
        let json = try JSONValue.parse(Array((line("http://a.test/x").text(.json) ?? "").utf8))
        #expect(json["at"]?.string == "1994-11-06T08:49:37.250Z" && json["seconds"]?.number?.literal == "0.001235")
        #expect(json["bytes"]?.integer == 5 && json["verdict"]?.string == "hit" && json["error"] == .null)
    }
}
