// A response of the notes API, before any interference.
package import HTTPTypes
package import RockpoolCore

/// A complete response. The connection adds the framing fields and `Date`.
package struct NotesReply: Hashable, Sendable {
    /// 200…599.
    package var status: Int
    /// The fields without framing and `Date`.
    package var fields: HTTPFields
    /// Empty for 204 and 304; for HEAD the body of GET, which the connection does not send.
    package var body: [UInt8]
    /// True if the request changed anything.
    package var hasEffect: Bool
    /// The time for which the response is held back.
    package var delay: TimeSpan

    package init(status: Int, fields: HTTPFields = [:], body: [UInt8] = [], hasEffect: Bool = false, delay: TimeSpan = .zero) {
        self.status = status
        self.fields = fields
        self.body = body
        self.hasEffect = hasEffect
        self.delay = delay
    }

    static func json(_ value: JSONValue, status: Int = 200, fields: HTTPFields = [:]) -> Self {
        var reply = Self(status: status, fields: fields, body: value.serialized())
        reply.fields[.contentType] = "application/json"
        return reply
    }

    /// 200 with a page.
    package static func html(_ page: String) -> Self {
        Self(status: 200, fields: [.contentType: "text/html; charset=utf-8"], body: Array(page.utf8))
    }

    /// A problem document (RFC 9457); `about` is the last segment of its type.
    package static func problem(_ status: Int, about: String, detail: String, fields: HTTPFields = [:]) -> Self {
        let body: JSONValue = [
            "type": .string("urn:notes:problem:\(about)"), "title": .string(about), "status": .number(JSONNumber(Int64(status))),
            "detail": .string(detail),
        ]
        var reply = Self(status: status, fields: fields, body: body.serialized())
        reply.fields[.contentType] = "application/problem+json"
        return reply
    }

    static let notFound = problem(404, about: "not-found", detail: "There is nothing at this address.")

    /// This response, marked as one that changed something.
    func changing() -> Self {
        var reply = self
        reply.hasEffect = true
        return reply
    }
}
