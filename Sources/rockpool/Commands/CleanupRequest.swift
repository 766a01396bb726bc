// The request of a cleanup (docs/storage.md#cleanup).
import RockpoolCore
import RockpoolStore

/// The options of `storage-cleanup`.
struct CleanupRequest: Hashable, Sendable {
    var aggressive = false
    var dryRun = false
    /// Only entries of this category.
    var category: String?
    /// Only entries unused for this time.
    var olderThan: TimeSpan?
    /// A full VACUUM, regardless of the share of free pages.
    var vacuum = false
    /// Offline copies too that are held (`CleanupHold`).
    var includesHeld = false
    /// A list of what is removed.
    var lists = false
}

extension CleanupRequest {
    var options: CleanupOptions {
        CleanupOptions(
            aggressive: aggressive, dryRun: dryRun, vacuum: vacuum, includesHeld: includesHeld, lists: lists, category: category,
            olderThan: olderThan)
    }

    /// The body of `POST /v1/storage/cleanup`.
    var body: ConfigDocument {
        var members: [ConfigDocument.Member] = [
            .init("aggressive", .bool(aggressive)), .init("dryRun", .bool(dryRun)), .init("vacuum", .bool(vacuum)),
        ]
        if includesHeld { members.append(.init("includesHeld", .bool(true))) }
        if lists { members.append(.init("list", .bool(true))) }
        if let category { members.append(.init("category", .text(category))) }
        if let olderThan { members.append(.init("olderThanSeconds", .int(Int(clamping: olderThan.seconds)))) }
        return .map(members)
    }
}
