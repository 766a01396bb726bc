// docs/reference/headers.md#request-fields: a request to a gateway names the origin, and trailers pass.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct GatewayFieldsTests {
    private let origin = OriginAddress(scheme: .https, host: "api.example")

    private func rewritten(_ name: String, _ value: String) throws -> String? {
        let name = try #require(HTTPField.Name(name))
        var fields: HTTPFields = [name: value]
        GatewayFields.rewrite(&fields, host: "127.0.0.1:7630", origin: origin)
        return fields[name]
    }

    @Test(arguments: [
        ("Origin", "http://127.0.0.1:7630", "https://api.example"), ("Origin", "null", "null"),
        ("Origin", "http://127.0.0.1:76301", "http://127.0.0.1:76301"), ("Origin", "https://other.example", "https://other.example"),
        ("Referer", "http://127.0.0.1:7630/a?b=c", "https://api.example/a?b=c"),
        ("Destination", "http://127.0.0.1:7630/b%20c", "https://api.example/b%20c"), ("Destination", "/b", "/b"),
        ("If", "<http://127.0.0.1:7630/a> (<urn:uuid:1> [\"e\"])", "<https://api.example/a> (<urn:uuid:1> [\"e\"])"),
        ("X-Other", "http://127.0.0.1:7630", "http://127.0.0.1:7630"),
    ])
    func namesOfTheGatewayBecomeTheOrigins(name: String, value: String, expected: String) throws {
        #expect(try rewritten(name, value) == expected)
    }

    @Test func forwardedFieldsNameTheClient() throws {
        let fields = GatewayFields.forwarded(for: "::1", host: "127.0.0.1:7630", scheme: "http")
        #expect(fields[try #require(HTTPField.Name("Forwarded"))] == #"for="[::1]";host="127.0.0.1:7630";proto=http"#)
        #expect(fields[try #require(HTTPField.Name("X-Forwarded-For"))] == "::1")
        #expect(fields[try #require(HTTPField.Name("X-Forwarded-Host"))] == "127.0.0.1:7630")
    }

    @Test func trailersAreAcceptedByTE() {
        let call: HTTPFields = [.contentType: "application/grpc"]
        let accepts = { (te: String) in Trailers.accepted(call.merging(te)) }
        #expect(accepts("trailers") == "trailers" && accepts("deflate, Trailers") == "trailers" && accepts("deflate") == nil)
        #expect(Trailers.accepted(call) == nil && Trailers.accepted([.te: "trailers"]) == nil)
    }

    @Test func trailersNeverFrameOrRoute() throws {
        let status = try #require(HTTPField.Name("grpc-status"))
        let kept = Trailers.forwardable([
            status: "0", .contentLength: "5", .setCookie: "a=b", .transferEncoding: "chunked", .cacheControl: "x",
        ])
        #expect(kept == [status: "0"])
    }

    @Test func streamsHaveNoLimitOfTheirOwn() throws {
        let events = ResponseHead(status: 200, fields: [.contentType: "text/event-stream; charset=utf-8"])
        #expect(StreamLimits.isStream(events) && !StreamLimits.isStream(ResponseHead(status: 200, fields: [.contentType: "text/plain"])))
        let request = RequestHead(method: .get, origin: origin, target: "/", fields: [.accept: "text/event-stream"])
        #expect(StreamLimits.timeouts(UpstreamTimeouts(), for: request, route: nil).firstByte == .forever)
        #expect(StreamLimits.timeouts(UpstreamTimeouts(), for: request, route: nil).streamIdle == .forever)
        var route = Route(match: "/**")
        route.timeouts = RouteTimeouts(firstByte: .seconds(30), idle: .seconds(5))
        let limits = StreamLimits.timeouts(UpstreamTimeouts(), for: request, route: route)
        #expect(limits.firstByte == .seconds(30) && limits.idle == .seconds(5) && limits.streamIdle == .seconds(5))
    }
}

extension HTTPFields {
    fileprivate func merging(_ te: String) -> HTTPFields {
        var fields = self
        fields[.te] = te
        return fields
    }
}
