// The measured messages: a browser's request with eight fields and an API's response, as sent by Benchmarks/peers.
import HTTPTypes
import RockpoolCore

enum Sample {
    static let now = Timestamp(seconds: 1_800_000_000)
    static let target = "/v1/notes?updatedAfter=2026-11-21T10:00:00Z&limit=50"
    static let origin = OriginAddress(scheme: .https, host: "api.example.com")

    /// The fields as the decoder returns them, including Host.
    static let requestFields: HTTPFields = {
        var fields: HTTPFields = [
            .userAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
            .accept: "application/json, text/plain, */*",
            .acceptLanguage: "en-GB,en;q=0.8,de;q=0.5",
            .acceptEncoding: "gzip, deflate",
            .referer: "http://app.example/notes",
        ]
        for (name, value) in [("Host", "api.example.com"), ("Sec-Fetch-Mode", "cors"), ("Sec-Fetch-Dest", "empty")] {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        return fields
    }()

    static let request = RequestHead(method: .get, origin: origin, target: target, fields: requestFields)

    static func response(cacheControl: String) -> StoredResponse {
        let head = ResponseHead(
            status: 200,
            fields: [
                .contentType: "application/json", .contentLength: "1024", .cacheControl: cacheControl, .eTag: "\"6a1f-3b9\"",
                .date: HTTPDate.format(now), .lastModified: "Fri, 20 Nov 2026 18:00:00 GMT", .server: "nginx", .vary: "Accept-Encoding",
            ])
        return StoredResponse(head: head, requestFields: [.acceptEncoding: "gzip, deflate"], requestTime: now, responseTime: now)
    }
}
