// Packs that were fetched, put together for a client in another state (https://git-scm.com/docs/gitformat-pack).

/// The content of a stored answer to a fetch: the history of the wanted objects without that of the objects that its client had.
package struct StoredPack: Hashable, Sendable {
    /// The most objects that one names.
    private static let limit = 1000

    package let wants: [String]
    package let haves: [String]

    /// Nil for an answer that is no whole pack, or names too much.
    package init?(_ request: GitRequest) {
        guard request.kind == .fetch, request.isComplete, request.wants.count + request.haves.count <= Self.limit else { return nil }
        (wants, haves) = (request.wants, request.haves)
    }

    /// As it is kept with the answer.
    package var note: String { (wants + ["-"] + haves).joined(separator: " ") }

    package init?(note: String) {
        let words = note.split(separator: " ", omittingEmptySubsequences: true).map { String($0) }
        guard let middle = words.firstIndex(of: "-") else { return nil }
        (wants, haves) = (Array(words[..<middle]), Array(words[(middle + 1)...]))
    }

    /// The packs that together hold what a client wants and has not got.
    /// - Parameters:
    ///   - stored: the newest first.
    ///   - haves: what the client has.
    /// - Returns: The places of the packs, those first on which others build, and what they build on at the client; nil if there are none.
    ///   Whether they are all that it needs, the client finds out: a history is known by its ends only.
    package static func chain(
        for wants: [String], having haves: Set<String>, among stored: [StoredPack]
    ) -> (packs: [Int], bases: [String])? {
        var holders: [String: [Int]] = [:]
        for (index, pack) in stored.enumerated() {
            for want in pack.wants { holders[want, default: []].append(index) }
        }
        var (chosen, bases, open, seen) = ([Int](), [String](), wants.filter { !haves.contains($0) }, Set<String>())
        while let want = open.popLast() {
            guard seen.insert(want).inserted else { continue }
            let candidates = holders[want] ?? []
            guard
                let index = candidates.first(where: chosen.contains)
                    ?? best(candidates, among: stored, haves: haves, isHeld: { holders[$0] != nil })
            else { return nil }
            guard !chosen.contains(index) else { continue }
            chosen.append(index)
            for have in stored[index].haves {
                if haves.contains(have) {
                    if !bases.contains(have) { bases.append(have) }
                } else if holders[have] != nil {
                    open.append(have)
                }
            }
        }
        return (chosen.reversed(), bases)
    }

    /// A pack that needs nothing but what the client has, or nothing at all; else the newest one that builds on another.
    private static func best(_ holders: [Int], among stored: [StoredPack], haves: Set<String>, isHeld: (String) -> Bool) -> Int? {
        holders.first { stored[$0].haves.contains(where: haves.contains) } ?? holders.first { stored[$0].haves.isEmpty }
            ?? holders.first { stored[$0].haves.contains(where: isHeld) }
    }
}
