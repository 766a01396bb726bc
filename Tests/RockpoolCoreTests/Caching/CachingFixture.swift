// Notation for the tables of caching tests: heads as text, and times in seconds from a fixed start.
import HTTPTypes
import RockpoolCore

enum CachingFixture {
    /// 2026-01-01T00:00:00Z.
    static let start = Timestamp(seconds: 1_767_225_600)
    static let origin = OriginAddress(scheme: .https, host: "api.example.com")

    static func at(_ seconds: Int64) -> Timestamp { start + .seconds(seconds) }
    static func date(_ seconds: Int64) -> String { HTTPDate.format(at(seconds)) }

    /// Parses `Name: value | Name: value`; `@90` within a value is the HTTP date 90 seconds after the start.
    static func fields(_ text: String) -> HTTPFields {
        var fields = HTTPFields()
        for line in text.split(separator: " | ") {
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let name = HTTPField.Name(String(parts[0])) else { continue }
            let value = parts[1].drop { $0 == " " }
            let moment = value.hasPrefix("@") ? Int64(value.dropFirst()) : nil
            fields.append(HTTPField(name: name, value: moment.map(date) ?? String(value)))
        }
        return fields
    }

    static func request(_ text: String = "", method: HTTPRequest.Method = .get, target: String = "/v1/notes") -> RequestHead {
        RequestHead(method: method, origin: origin, target: target, fields: fields(text))
    }

    static func response(_ text: String = "", status: Int = 200) -> ResponseHead { ResponseHead(status: status, fields: fields(text)) }

    /// Returns a stored response, received at the start without delay.
    static func stored(
        _ text: String = "", status: Int = 200, for request: String = "", at seconds: Int64 = 0, assignedTTL: TimeSpan? = nil,
        bodyLength: Int64 = 0
    ) -> StoredResponse {
        let head = response(text, status: status)
        return StoredResponse(
            head: head, requestFields: Vary.selectingFields(response: head, request: Self.request(request)) ?? [:],
            requestTime: at(seconds), responseTime: at(seconds), bodyLength: bodyLength, assignedTTL: assignedTTL)
    }
}
