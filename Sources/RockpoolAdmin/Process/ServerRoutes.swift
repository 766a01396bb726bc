// `/v1/configuration`, `/v1/reload` and the codes that open the dashboard (docs/reference/admin-api.md#server).
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolStore

struct ServerRoutes {
    let data: DataStore
    let facts: ServerFacts
    let codes: DashboardCodes
    let token: String
    let clock: @Sendable () -> Timestamp
    let dashboard: @Sendable () -> String

    func add(to router: Router<AdminContext>) {
        router.get("/v1/configuration") { request, context in try read(request, in: context) { configuration() } }
        router.get("/v1/configuration/values") { request, context in
            try read(request, in: context) {
                .json(["file": .optional(facts.configFile), "items": .array(facts.values()), "next": .null])
            }
        }
        router.post("/v1/backup") { request, _ in try backup(request) }
        router.post("/v1/reload") { _, _ in await reload() }
        router.put("/v1/upstreams/{name}") { request, context in
            try await declare(request, named: context.parameters.require("name"))
        }
        router.post("/v1/dashboard/codes") { _, _ in code() }
        router.post("/v1/dashboard/token") { request, _ in try await exchange(request) }
    }

    /// The configuration needs the token: it may name the passwords of parent proxies.
    private func read(_ request: Request, in context: AdminContext, answer: () -> Response) throws -> Response {
        guard context.isThroughSocket || request.carries(token: token) else {
            return Response.tokenNeeded(by: "readers of the configuration")
        }
        return answer()
    }

    private func configuration() -> Response {
        Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(string: facts.configuration())))
    }

    /// A backup that fails midway ends without the last chunk, so that the client recognizes it as incomplete.
    private func backup(_ request: Request) throws -> Response {
        let keys = try AdminQuery(request, known: ["keys"]).flag(named: "keys")
        let configuration = facts.configFile.flatMap { FileManager.default.contents(atPath: $0) }.map { Array($0) }
        return Response(
            status: .ok, headers: [.contentType: "application/x-tar", .cacheControl: "no-store"],
            body: ResponseBody { [data, facts] writer in
                try await data.backup(keys: keys, configuration: configuration, version: facts.version) {
                    try await writer.write(ByteBuffer(bytes: $0))
                }
                try await writer.finish(nil)
            })
    }

    private func reload() async -> Response {
        do {
            let outcome = try await facts.reload()
            return .json([
                "waiting": .array(outcome.waiting.map { .string($0) }), "partly": .array(outcome.partly.map { .string($0) }),
            ])
        } catch {
            return .problem(.conflict, detail: "the configuration is not reloaded, the old one stays in force: \(error)")
        }
    }

    private func declare(_ request: Request, named name: String) async throws -> Response {
        let name = name.removingPercentEncoding ?? name
        guard let body = await request.jsonObject(), let origin = body["origin"]?.string else {
            return .problem(.badRequest, detail: "the body is {\"origin\": URL}, and may have \"gateway\": \"host:port\"")
        }
        if let other = body.names.first(where: { !["origin", "gateway"].contains($0) }) {
            return .problem(.unprocessable, detail: "\(other) is no member of this body; the file takes every other key")
        }
        do throws(UpstreamDeclaration.Refusal) {
            let outcome = try await facts.declare(UpstreamDeclaration(name: name, origin: origin, gateway: body["gateway"]?.string))
            return .json(
                ["name": .string(name), "origin": .string(origin), "gateway": .optional(outcome.gateway)],
                status: outcome.isKnown ? .ok : .created)
        } catch {
            switch error {
            case .invalid(let why): return .problem(.unprocessable, detail: why)
            case .notPossible(let why): return .problem(.conflict, detail: why)
            }
        }
    }

    private func code() -> Response {
        let (code, until) = codes.issue(now: clock())
        return .json(["code": .string(code), "url": .string(dashboard() + "#once=" + code), "expiresAt": .time(until)], status: .created)
    }

    private func exchange(_ request: Request) async throws -> Response {
        guard let code = await request.jsonObject()?["code"]?.string, codes.use(code, now: clock()) else {
            return .problem(.unauthorized, detail: "the code was used or has expired; open a new one with: rockpool dashboard")
        }
        return .json(["token": .string(token)])
    }
}
