// `/v1/storage`, its cleanup and its scrub: usage, limits and integrity of the stores (docs/reference/admin-api.md#storage;
// docs/storage.md#cleanup).
import Foundation
import Hummingbird
import NIOCore
import RockpoolCore
import RockpoolEngine
import RockpoolStore

struct StorageRoutes {
    let cache: CacheStore
    let data: DataStore
    let active: ActiveConfiguration
    let cleaner: Cleaner
    let history: StorageHistory
    let now: @Sendable () -> Timestamp

    func add(to router: Router<AdminContext>) {
        router.get("/v1/storage") { _, _ in Response.json(try await storage()) }
        router.get("/v1/storage/history") { _, _ in Response.json(["items": .array(history.list), "next": .null]) }
        router.post("/v1/storage/cleanup") { request, _ in try await cleanup(request: request) }
        router.post("/v1/storage/scrub") { request, _ in try await scrub(request: request) }
    }

    private func storage() async throws -> JSONValue {
        let cache = try await self.cache.usage()
        let data = self.data.usage()
        let settings = active.configuration.storage
        return [
            "cache": [
                "bytes": .integer(cache.usedBytes), "limitBytes": .integer(cache.limitBytes),
                "limitReason": .string(cache.limitReason.rawValue),
                "reservedBytes": .integer(cache.reservedBytes + cache.unusedLogBytes),
                "badBodies": .integer(cache.badBodies), "trouble": Self.trouble(self.cache.trouble),
                "byCategory": categories(of: cache, reclaimable: try await self.cache.reclaimable(now: now())),
                "byUpstream": try await upstreams(),
                "driftBytes": .integer(cache.driftBytes), "auditedAt": .time(cache.auditedAt),
            ],
            "data": [
                "bytes": .integer(data.usedBytes), "limitBytes": .integer(data.limitBytes),
                "reservedBytes": .integer(data.reservedBytes + data.unusedLogBytes), "trouble": Self.trouble(self.data.trouble),
                "byUpstream": try await queues(),
            ],
            "disk": ["freeBytes": .integer(cache.freeDiskBytes), "minFreeBytes": .integer(settings.minFree.bytes)],
            "pinned": [
                "bytes": .integer(cache.pinnedBytes),
                "capBytes": .integer(settings.cacheLimit.bytes / 100 * Int64(settings.pinCapPercent)),
            ],
            "reclaimableBytes": .integer(cache.reclaimableBytes + data.reclaimableBytes),
            "lastCleanup": .time(cleaner.lastRun), "cleanup": Self.cleanup(of: cleaner.progress),
        ]
    }

    /// Every upstream with a limit of its own for its stored responses, with what they take.
    private func upstreams() async throws -> JSONValue {
        var rows = JSONObject()
        for upstream in active.configuration.upstreams {
            guard let limit = upstream.cacheLimit, let bytes = try await cache.bytesUnderQuota(of: upstream.origin) else { continue }
            rows[upstream.name] = ["bytes": .integer(bytes), "limitBytes": .integer(limit.bytes)]
        }
        return .object(rows)
    }

    /// Every upstream with a limit of its own for its queued writes, with what the open ones count.
    private func queues() async throws -> JSONValue {
        var rows = JSONObject()
        for upstream in active.configuration.upstreams {
            guard let limit = upstream.dataLimit else { continue }
            rows[upstream.name] = ["bytes": .integer(try await data.openBytes(of: upstream.name)), "limitBytes": .integer(limit.bytes)]
        }
        return .object(rows)
    }

    /// The cleanup in progress.
    private static func cleanup(of progress: CleanupProgress?) -> JSONValue {
        guard let progress else { return .null }
        return [
            "step": .string(progress.step), "done": .integer(progress.done), "of": .integer(progress.of),
            "removedEntries": .integer(progress.removed.entries), "removedBytes": .integer(progress.removed.bytes),
        ]
    }

    private static func trouble(_ trouble: StorageHealth.Trouble?) -> JSONValue {
        guard let trouble else { return .null }
        return ["fault": .string(trouble.fault.rawValue), "since": .time(trouble.since), "detail": .string(trouble.detail)]
    }

    /// Every configured or used category, with its usage and limits.
    private func categories(of usage: CacheUsage, reclaimable: [String: Int64]) -> JSONValue {
        let configured = Dictionary(uniqueKeysWithValues: active.configuration.categories.map { ($0.name, $0) })
        let rows = Set(configured.keys).union(usage.byCategory.keys).sorted().map { name -> (String, JSONValue) in
            let (held, category) = (usage.byCategory[name], configured[name])
            let part = { (percent: Int?) in usage.limitBytes / 100 * Int64(percent ?? 0) }
            return (
                name,
                [
                    "entries": .integer(held?.entries ?? 0), "bytes": .integer(held?.bytes ?? 0),
                    "pinnedBytes": .integer(held?.pinnedBytes ?? 0), "reclaimableBytes": .integer(reclaimable[name] ?? 0),
                    "limitBytes": .integer(part(category?.sharePercent)), "guaranteedBytes": .integer(part(category?.guaranteePercent)),
                ]
            )
        }
        return .object(JSONObject(rows))
    }

    /// The error in a cleanup's options, or nil: a misspelt dry run must not become a real one.
    private static func mistake(in body: JSONObject) -> String? {
        for (name, value) in body {
            switch name {
            case "aggressive", "dryRun", "vacuum", "includesHeld", "list": if value.bool == nil { return "\(name) is true or false" }
            case "category": if value.string == nil, !value.isNull { return "category is a name" }
            case "olderThanSeconds": if (value.wholeNumber ?? -1) < 0, !value.isNull { return "olderThanSeconds is a number of seconds" }
            default:
                return "unknown member \(name); there are aggressive, dryRun, vacuum, includesHeld, list, category and olderThanSeconds"
            }
        }
        return nil
    }

    private func cleanup(request: Request) async throws -> Response {
        guard let body = await request.jsonObject() else {
            return .problem(.badRequest, detail: #"send {"aggressive": bool, "dryRun": bool, "vacuum": bool} or nothing"#)
        }
        if let wrong = Self.mistake(in: body) { return .problem(.badRequest, detail: wrong) }
        let category = body["category"]?.string
        if let category { _ = try CacheSelector.category(category, active: active, inUse: []) }
        let options = CleanupOptions(
            aggressive: body["aggressive"]?.bool ?? false, dryRun: body["dryRun"]?.bool ?? false, vacuum: body["vacuum"]?.bool ?? false,
            includesHeld: body["includesHeld"]?.bool ?? false, lists: body["list"]?.bool ?? false, category: category,
            olderThan: body["olderThanSeconds"]?.wholeNumber.map { .seconds($0) })
        return try Self.report(await cleaner.runOnce(options))
    }

    /// Reads every body of both stores, which takes as long as the disk needs.
    private func scrub(request: Request) async throws -> Response {
        guard let body = await request.jsonObject() else { return .problem(.badRequest, detail: #"send {"dryRun": bool} or nothing"#) }
        for (name, value) in body where name != "dryRun" || value.bool == nil {
            return .problem(.badRequest, detail: name == "dryRun" ? "dryRun is true or false" : "unknown member \(name); there is dryRun")
        }
        let dryRun = body["dryRun"]?.bool ?? false
        guard cache.beginScrub() else {
            return .problem(.conflict, detail: "a scrub is in progress; try again when it has finished")
        }
        defer { cache.endScrub() }
        let cached = await cache.scrub(dryRun: dryRun, now: now())
        return try Self.report(cached.merged(with: await data.scrub(dryRun: dryRun, now: now())))
    }

    private static func report(_ report: some Encodable) throws -> Response {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Response(
            status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(bytes: try encoder.encode(report))))
    }
}
