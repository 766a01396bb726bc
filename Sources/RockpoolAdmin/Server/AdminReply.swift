// JSON responses and problem documents of the admin API (docs/reference/admin-api.md#conventions; RFC 9457).
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine

extension Response {
    static func json(_ value: JSONValue, status: HTTPResponse.Status = .ok) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(bytes: value.serialized())))
    }

    static func problem(_ problem: Problem) -> Response {
        let (head, body) = problem.response
        return Response(status: .init(code: head.status), headers: head.fields, body: .init(byteBuffer: body))
    }

    static func problem(_ type: ProblemType, detail: String) -> Response { .problem(Problem(type, detail: detail)) }
}

extension Request {
    /// The request's body as a JSON object; an empty body is the empty object. Nil if it is no object or exceeds `limit`.
    func jsonObject(upTo limit: Int = .mib(1)) async -> JSONObject? {
        guard let body = try? await self.body.collect(upTo: limit) else { return nil }
        if body.readableBytes == 0 { return JSONObject() }
        return (try? JSONValue.parse(Array(body.readableBytesView)))?.object
    }
}
