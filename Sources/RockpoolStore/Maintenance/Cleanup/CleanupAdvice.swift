// What would free the most beyond a cleanup, and why it was kept, in words for people (docs/storage.md#cleanup).
import RockpoolCore

/// Advice about the entries and operations that a cleanup keeps.
enum CleanupAdvice {
    /// Parts below this size are not worth a command.
    private static let leastBytes: Int64 = 100_000

    /// Returns one line for each kept part with the command that frees it, the largest first, then why nothing else is removed.
    static func lines(of report: CleanupReport) -> [String] {
        let notDue = report.kept.byReason["notDue"]?.bytes ?? 0, pinned = report.kept.byReason["pinned"]?.bytes ?? 0
        var parts: [(bytes: Int64, words: String)] = []
        if notDue >= leastBytes, let (name, bytes) = report.kept.notDue.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }) {
            let how =
                name == CacheCategory.assets.name && !report.aggressive
                ? "rockpool storage-cleanup --aggressive --category \(name) removes those that are not pinned"
                : "rockpool cache purge --category \(name) removes all of them, and they cannot be read offline then"
            parts.append((bytes, "most: \(ByteCount(bytes).rounded) of the category \(name): \(how)"))
        }
        for (origin, count) in report.held.sorted(by: { $0.key < $1.key }) where count.entries > 0 {
            let place = "of \(origin) (\(ByteCount(count.bytes).rounded))"
            let words = count.entries.counted("offline copy \(place) stays", "offline copies \(place) stay")
            parts.append(
                (count.bytes, "\(words): it is away, or writes that wait name them; with --yes they go, and cannot be read then"))
        }
        if pinned >= leastBytes {
            parts.append(
                (pinned, "pinned: \(ByteCount(pinned).rounded), never removed by itself: rockpool cache unpin URL, then clean up again"))
        }
        if report.files.dataAfter > report.files.cacheAfter, report.operations.waiting > 0 {
            let size = ByteCount(report.files.dataAfter).rounded
            let words = "the outbox takes \(size) with its reserve for a full disk, and writes that wait are never removed"
            parts.append((report.files.dataAfter, "\(words): rockpool outbox summary shows whose they are"))
        }
        let (waiting, ended) = (report.operations.waiting, report.operations.kept - report.operations.waiting)
        let reasons = [
            notDue > 0 ? "\(ByteCount(notDue).rounded) are fresh, were used lately, or are kept for offline use" : nil,
            pinned > 0 ? "\(ByteCount(pinned).rounded) are pinned" : nil,
            waiting > 0 ? waiting.counted("write waits", "writes wait") : nil,
            ended > 0 ? ended.counted("ended write is kept for its time", "ended writes are kept for their time") : nil,
        ].compactMap(\.self)
        let why = reasons.isEmpty ? "nothing more is stored" : "nothing more is removed: \(reasons.joined(separator: "; "))"
        return parts.sorted { $0.bytes > $1.bytes }.map(\.words) + [why]
    }
}
