// Both stores in a temporary directory of the test (docs/architecture.md#rules: the store is concrete, never mocked).
import Foundation
package import Logging
package import RockpoolCore
package import RockpoolStore

/// A cache and a data store; the directory is removed when this object is released.
package final class TemporaryStore: Sendable {
    package let directory: String
    package let cache: CacheStore
    package let data: DataStore

    package init(clock: ManualClock, categories: [CacheCategory] = CacheCategory.builtIn) throws {
        directory = "\(NSTemporaryDirectory())rockpool-\(UUID().uuidString)"
        var settings = StorageSettings()
        settings.minFree = .zero
        settings.dataLimit = .mb(64)
        (settings.cacheDir, settings.stateDir) = ("\(directory)/cache", "\(directory)/state")
        data = try DataStore.open(directory: settings.stateDir, settings: settings, clock: clock.reading, logger: .silent)
        cache = try CacheStore.open(
            directory: settings.cacheDir, settings: settings, categories: categories, seal: data.seal, clock: clock.reading,
            ticks: data.ticks, logger: .silent)
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// Returns the names of the files under the state directory that contain `text`.
    package func stateFiles(holding text: String) -> [String] {
        let needle = Data(text.utf8)
        let root = "\(directory)/state"
        let names = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
        return names.filter { FileManager.default.contents(atPath: "\(root)/\($0)")?.range(of: needle) != nil }
    }
}

extension Logger {
    /// A logger that discards all messages.
    package static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
