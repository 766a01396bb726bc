// docs/outbox.md#files-and-collections: which bodies of PUT are read back (RFC 9110 §9.3.4).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct WrittenContentTests {
    /// A stored copy with the media type and the content, a PUT with its own, and whether the PUT can be what a read shows.
    @Test(
        arguments: [
            // Nothing is stored: anything but a form.
            (nil, "", "text/plain", "a", true), (nil, "", nil, "a", true), (nil, "", "application/json", "{}", true),
            (nil, "", "application/x-www-form-urlencoded", "a=1", false), (nil, "", "multipart/form-data; boundary=b", "--b--", false),
            // Of the same type, whatever its parameters.
            ("text/plain", "a", "text/plain; charset=utf-8", "b", true), ("text/calendar; charset=utf-8", "a", "text/calendar", "b", true),
            ("text/plain", "a", "text/html", "b", false), ("image/png", "a", "image/jpeg", "b", false),
            ("text/html", "a", "application/json", "{}", false), ("text/plain", "a", "application/x-www-form-urlencoded", "b=1", false),
            // A type that says nothing about the content.
            ("text/plain", "a", nil, "b", true), ("text/plain", "a", "application/octet-stream", "b", true),
            ("application/octet-stream", "a", "text/plain", "b", true), (nil, "", "application/octet-stream", "b", true),
            // In JSON, with all members.
            ("application/json", #"{"a":1,"b":2}"#, "application/json", #"{"b":3,"a":4}"#, true),
            ("application/json", #"{"a":1,"b":2}"#, "application/json", #"{"a":4}"#, false),
            ("application/json", #"{"a":1}"#, "application/vnd.api+json", #"{"a":2,"c":3}"#, true),
            ("application/json", #"{"a":1}"#, nil, #"{"a":2}"#, true), ("application/json", #"{"a":1}"#, nil, "a=2", false),
            ("application/json", #"{"a":1}"#, "application/octet-stream", "a", false),
            ("application/json", "[1]", "application/json", "[2]", true),
            ("application/json", "[1]", "application/json", "{}", false), ("application/json", "1", "application/json", "2", true),
            ("application/json", "{}", "application/json", #"{"ä":1}"#, true), ("application/json", "{", "application/json", "{}", true),
            ("application/json", #"{"a":1}"#, "application/json", "{", false),
            ("application/json", #"{"a":1}"#, "text/plain", #"{"a":2}"#, false),
        ] as [(String?, String, String?, String, Bool)])
    func aPutIsReadBackOnlyIfItCanBeTheRepresentation(
        _ known: String?, _ content: String, _ type: String?, _ body: String, isShown: Bool
    ) {
        var fields = HTTPFields()
        fields[.contentType] = type
        let copy = known.map { ResponseHead(status: 200, fields: [.contentType: $0]) }
        #expect(WrittenContent(fields, body: Array(body.utf8)).mayRepresent(copy, content: Array(content.utf8)) == isShown)
    }
}
