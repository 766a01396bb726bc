// `/v1/storage` and its cleanup: what is used, of what limit, and what can be had back (contract §4, §6; storage.md §6).
import Foundation
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct StorageRoutes {
    let engine: Engine
    let cleaner: Cleaner

    func add(to router: Router<AdminContext>) {
        router.get("/v1/storage") { _, _ in Response.json(try await storage()) }
        router.post("/v1/storage/cleanup") { request, _ in try await cleanup(request) }
    }

    private func storage() async throws -> JSONValue {
        let cache = try await engine.cache.usage()
        let data = engine.data.usage()
        let settings = engine.configuration.storage
        return [
            "cache": [
                "bytes": .integer(cache.usedBytes), "limitBytes": .integer(cache.limitBytes),
                "reservedBytes": .integer(cache.reservedBytes + cache.unusedLogBytes),
                "byCategory": Self.byCategory(cache),
            ],
            "data": [
                "bytes": .integer(data.usedBytes), "limitBytes": .integer(data.limitBytes),
                "reservedBytes": .integer(data.reservedBytes + data.unusedLogBytes),
            ],
            "disk": ["freeBytes": .integer(cache.freeDiskBytes), "minFreeBytes": .integer(settings.minFree.bytes)],
            "pinned": [
                "bytes": .integer(cache.pinnedBytes),
                "capBytes": .integer(settings.cacheLimit.bytes / 100 * Int64(settings.pinCapPercent)),
            ],
            "reclaimableBytes": .integer(cache.reclaimableBytes + data.reclaimableBytes),
            "lastCleanup": .time(cleaner.lastRun),
        ]
    }

    static func byCategory(_ usage: CacheUsage) -> JSONValue {
        let rows = usage.byCategory.sorted { $0.key < $1.key }.map { name, usage in
            (name, JSONValue.object(JSONObject([("entries", .integer(usage.entries)), ("bytes", .integer(usage.bytes))])))
        }
        return .object(JSONObject(rows))
    }

    /// What is wrong with a cleanup's wishes: a dry run misspelt must not become a real one.
    private static func mistake(in body: JSONObject) -> String? {
        for (name, value) in body {
            switch name {
            case "aggressive", "dryRun", "vacuum": if value.bool == nil { return "\(name) is true or false" }
            case "category": if value.string == nil, !value.isNull { return "category is a name" }
            case "olderThanSeconds": if (value.integer ?? -1) < 0, !value.isNull { return "olderThanSeconds is a number of seconds" }
            default: return "unknown member \(name); there are aggressive, dryRun, vacuum, category and olderThanSeconds"
            }
        }
        return nil
    }

    private func cleanup(_ request: Request) async throws -> Response {
        guard let body = await request.jsonObject() else {
            return .problem(.badRequest, #"send {"aggressive": bool, "dryRun": bool, "vacuum": bool} or nothing"#)
        }
        if let wrong = Self.mistake(in: body) { return .problem(.badRequest, wrong) }
        let category = body["category"]?.string
        if let category, !engine.configuration.categories.contains(where: { $0.name == category }) {
            return .problem(.badRequest, "no category \(category)")
        }
        let options = CleanupOptions(
            aggressive: body["aggressive"]?.bool ?? false, dryRun: body["dryRun"]?.bool ?? false, vacuum: body["vacuum"]?.bool ?? false,
            category: category, olderThan: body["olderThanSeconds"]?.integer.map { .seconds($0) })
        let report = try JSONEncoder().encode(await cleaner.runOnce(options))
        return Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(bytes: report)))
    }
}
