// The numbers of operations: their order, and where they are found. Their identity is the id (docs/fleet.md#away).

extension ReplayMachine {
    /// The number under which an operation is known by its id alone: it is busy, or numbers change.
    func number(of id: UUIDText) -> Int64? { numbers[id] }

    func number(of operation: QueuedWrite) -> Int64 { numbers[UUIDText(operation.id)] ?? operation.sequence }

    /// What is known of an operation, whatever number it has here.
    func entry(of summary: OperationSummary) -> Entry? {
        guard let entry = lanes.entries[numbers[summary.shortID] ?? summary.sequence], entry.summary.shortID == summary.shortID else {
            return nil
        }
        return entry
    }

    /// True if what was told of an operation may be older than what is known: an action is under way, or the operation was told with a greater
    /// number, as before it was handed over to its fleet.
    func mayBeLate(_ summary: OperationSummary) -> Bool {
        entry(of: summary)?.isBusy == true || numbers[summary.shortID].map { $0 < summary.sequence } ?? false
    }

    /// Moves an operation to the number that it has now. Another one that is known under that number is forgotten and read again.
    /// - Returns: true if it was known under another number.
    mutating func renumber(_ summary: OperationSummary, now: Timestamp) -> Bool {
        if let other = lanes.entries[summary.sequence]?.summary, other.shortID != summary.shortID {
            missed.insert(other.shortID)
            count(other, by: -1)
            waits.forget(other)
            lanes.remove(other.sequence, needs: other.needs)
            numbers[other.shortID] = nil
            offer(LaneClient(other), now: now)
        }
        guard let known = numbers[summary.shortID], known != summary.sequence, let before = lanes.entries[known]?.summary else {
            return false
        }
        waits.forget(before)
        gates[before.upstream]?.renumber(known, to: summary.sequence)
        lanes.renumber(known, to: summary.sequence)
        offer(LaneClient(before), now: now)
        return true
    }
}
