// `POST /v1/reports` and the list of sites (docs/fleet.md#sites).
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct CollectorRoutes {
    static let reports = "/v1/reports"
    static let health = "/healthz"
    /// Bytes of a report at most.
    private static let reportLimit = Int.kib(64)

    let store: SiteStore
    let now: @Sendable () -> Timestamp
    /// True if a site with this last report is silent.
    let isSilent: @Sendable (Timestamp?) -> Bool

    func add(to router: Router<AdminContext>) {
        router.get("/healthz") { _, _ in Response(status: .noContent) }
        router.post("/v1/reports") { request, _ in try await take(request) }
        router.get("/v1/sites") { _, _ in Response.json(["items": .array(sites()), "next": .null]) }
        router.get("/v1/fleet/status") { _, _ in Response.json(["nodes": [], "sites": .array(sites())]) }
    }

    /// Keeps a report, if it is signed by its site. The answer to one that is not does not tell which sites there are.
    private func take(_ request: Request) async throws -> Response {
        guard let body = try? await request.body.collect(upTo: Self.reportLimit) else {
            return .problem(.bodyTooLarge, detail: "a report has at most \(Self.reportLimit) bytes")
        }
        let bytes = Array(body.readableBytesView)
        guard let report = (try? JSONValue.parse(bytes))?["data"], let site = report["site"]?.string else {
            return .problem(.badRequest, detail: "a report is a JSON object with data.site")
        }
        guard let signature = store.signature(of: site) else {
            return .problem(.unauthorized, detail: "\(WebhookSignature.Doubt.wrong)")
        }
        let moment = now()
        let message: (id: String, sentAt: Timestamp)
        do { message = try signature.verify(request.headers, body: bytes, now: moment) } catch {
            return .problem(.unauthorized, detail: "\(error == .unsigned ? .wrong : error)")
        }
        if let member = SiteReportForm.fault(in: report) {
            return .problem(.badRequest, detail: "\(member) of the report is not what docs/fleet.md#sites says")
        }
        let record = SiteRecord(site: site, receivedAt: moment, sentAt: message.sentAt, id: message.id, report: report)
        do {
            // A report older than the last one was received before, or is overtaken: for its sender it is delivered.
            _ = try store.keep(record)
            return Response(status: .noContent)
        } catch {
            return .problem(.notQueueable, detail: "\(error)")
        }
    }

    private func sites() -> [JSONValue] {
        store.names().map { name in
            let record = store.record(of: name)
            return [
                "site": .string(name), "silent": .bool(isSilent(record?.receivedAt)), "heardAt": .time(record?.receivedAt),
                "sentAt": .time(record?.sentAt), "report": record.map { SiteReportForm.readable($0.report) } ?? .null,
            ]
        }
    }
}
