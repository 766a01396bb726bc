// The marks that an earlier run has left: live writes that ended while their rows were still there (docs/outbox.md#live-writes).

/// The content of the file `live-ended`, as it was found.
struct EndedLiveWrites: Sendable {
    /// Bytes of a mark: the token that was in the slot last.
    static let size = 8

    private let bytes: [UInt8]

    static func path(_ directory: String) -> String { "\(directory)/live-ended" }

    /// Reads the file of a state directory; a file that cannot be read has no marks.
    init(directory: String) {
        bytes = (try? FileBytes.read(Self.path(directory))) ?? []
    }

    /// True if this live write had ended.
    func contains(_ trace: LiveWriteTrace) -> Bool {
        let (start, overflow) = Int(clamping: trace.slot).multipliedReportingOverflow(by: Self.size)
        guard !overflow, start >= 0, start <= bytes.count - Self.size else { return false }
        return Array(bytes[start..<start + Self.size]) == Self.mark(trace.token)
    }

    static func mark(_ token: Int64) -> [UInt8] {
        let bits = UInt64(bitPattern: token)
        return (0..<UInt64(size)).map { UInt8(truncatingIfNeeded: bits >> ($0 * 8)) }
    }
}
