// W3C Trace Context and spans (docs/guide/operating.md#traces).
import RockpoolCore
import Testing

@Suite struct TraceContextTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c", span = "b7ad6b7169203331"

    @Test func theFieldIsReadAndWritten() throws {
        let text = "00-\(Self.trace)-\(Self.span)-01"
        let context = try #require(TraceContext(text))
        #expect(context.traceID == Self.trace && context.spanID == Self.span && context.isSampled && context.fieldValue == text)
        #expect(TraceContext("00-\(Self.trace)-\(Self.span)-00")?.isSampled == false)
        #expect(TraceContext("01-\(Self.trace)-\(Self.span)-03-more")?.isSampled == true, "a later version")
    }

    @Test(arguments: [
        "", "00", "00-\(trace)-\(span)", "ff-\(trace)-\(span)-01", "00-\(trace)-\(span)-01-more", "00-\(trace.uppercased())-\(span)-01",
        "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01", "00-\(trace)-\(span)-1",
        "00-x\(trace)-\(span)-01",
        "00-\(trace)-\(span)-zz",
    ]) func whatIsMalformedCountsAsAbsent(text: String) { #expect(TraceContext(text) == nil) }

    @Test func aSpanContinuesOrBegins() throws {
        var number: UInt64 = 0
        let random: () -> UInt64 = {
            number += 1
            return number
        }
        let incoming = try #require(TraceContext("00-\(Self.trace)-\(Self.span)-01"))
        let continued = try #require(TraceSpan(continuing: incoming, percent: 0, draw: 99, random: random))
        #expect(continued.traceID == Self.trace && continued.parentID == Self.span && continued.spanID == "0000000000000001")
        #expect(continued.outgoing.fieldValue == "00-\(Self.trace)-0000000000000002-01")
        let quiet = TraceContext(traceID: Self.trace, spanID: Self.span, isSampled: false)
        #expect(TraceSpan(continuing: quiet, percent: 100, draw: 0, random: random) == nil)
        let begun = try #require(TraceSpan(continuing: nil, percent: 50, draw: 49, random: random))
        #expect(begun.parentID == nil && begun.traceID == "00000000000000030000000000000004")
        #expect(TraceSpan(continuing: nil, percent: 50, draw: 50, random: random) == nil)
        #expect(TraceContext.digits(of: 0) == "0000000000000001", "an id is never zero")
    }

    @Test(arguments: [
        ("otlp://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"), ("otlp://collector", "http://collector:4318/v1/traces"),
        ("otlps://c.example:443", "https://c.example/v1/traces"), ("http://c/otlp/v1/traces", "http://c/otlp/v1/traces"),
        ("https://c", "https://c/v1/traces"),
    ]) func collectors(text: String, url: String) { #expect(TracingSettings(url: text).endpoint?.url == url) }

    @Test(arguments: ["", "otlp://", "otlp://c/path", "grpc://c", "c:4317", "otlp://u@c"]) func noCollectors(text: String) {
        #expect(TracingSettings(url: text).endpoint == nil)
    }
}
