// Benchmarks of the store for a hot hit: the entry and its body of 1 KB are in memory.
import Benchmark
import Foundation
import Logging
import NIOCore
import RockpoolCore
import RockpoolStore

func storeBenchmarks() {
    Benchmark("CacheStore, lookup and body in memory", configuration: .perCall) { (benchmark: Benchmark, stage: Stage) in
        benchmark.calls { blackHole(stage.hit()) }
    } setup: {
        let stage = try await Stage()
        precondition(stage.hit() == 1024, "nothing is found in memory")
        return stage
    }
}

/// A store with one entry, all in memory: its directory is removed before the measurement.
private final class Stage: Sendable {
    private let store: CacheStore
    private let key = CacheKey(Sample.request)

    init() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "rockpool-bench-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        store = try CacheStore.open(
            directory: directory.path, settings: StorageSettings(), categories: CacheCategory.builtIn, seal: .off, clock: { Sample.now },
            logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })
        guard let writer = await store.beginWrite(expectedLength: 1024, category: .important) else { return }
        _ = try await writer.append(ByteBuffer(repeating: 0x61, count: 1024))
        _ = try await store.commit(writer, key: key, response: Sample.response(cacheControl: "public, max-age=3600"))
        // The first read loads it into memory.
        for entry in try await store.lookup(key) { _ = try await store.body(of: entry) }
    }

    /// The number of body bytes found; 0 without a body.
    func hit() -> Int {
        guard let entry = store.lookupInMemory(key)?.first, let body = store.bodyInMemory(of: entry) else { return 0 }
        return body.readableBytes
    }
}
