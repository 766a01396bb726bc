// The measurements behind the notices about limits (docs/guide/operating.md#alarms).
import RockpoolCore
import RockpoolStore

extension Announcer {
    /// Measures the server. What cannot be read is left out.
    func readings() async -> NoticeReadings {
        var readings = NoticeReadings()
        let now = now()
        if let oldest = try? await data.oldestPendingWrite() {
            readings.oldest = (oldest.id, oldest.upstream, max(.zero, now - oldest.acceptedAt), oldest.lastError)
        }
        let usage = data.usage()
        (readings.dataBytes, readings.dataLimitBytes) = (usage.usedBytes, usage.limitBytes)
        if let trouble = data.trouble { readings.faults.append("The outbox cannot be written to (\(trouble.detail))") }
        if let refused = refusedWrites.words(now: now) { readings.faults.append("The outbox had no room: \(refused)") }
        if let trouble = cache.trouble { readings.faults.append("The cache cannot be written to (\(trouble.detail))") }
        if let usage = try? await cache.usage(), usage.freeDiskBytes < usage.minFreeBytes {
            let free = ByteCount(usage.freeDiskBytes)
            readings.faults.append("The disk of the cache has \(free) free, less than storage.min_free; nothing is stored")
        }
        readings.pausedRoutes = pauses.takePausedRoutes().map { ($0.upstream, $0.pause) }
        for upstream in active.routes.upstreams where upstream.receiver == nil {
            guard let machine = reachability.machine(of: upstream.name), machine.mode == .auto, !machine.isReachable else { continue }
            readings.absent.append((upstream.name, max(.zero, now - machine.since), machine.lastError))
        }
        return readings
    }
}
