// Finds the known word nearest to a mistyped one by edit distance (Damerau; a swap of neighbours counts once).

enum Nearest {
    /// The closest of `candidates`, the first among equals; nil only if there are none.
    static func to(_ word: String, of candidates: [String]) -> String? {
        candidates.min { distance(from: word, to: $0) < distance(from: word, to: $1) }
    }

    /// Counts insertions, deletions, replacements and swaps of neighbours between two words, case-insensitively.
    static func distance(from a: String, to b: String) -> Int {
        let a = Array(a.lowercased()), b = Array(b.lowercased())
        var before: [Int] = []
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, before[j - 1] + 1) }
                row.append(best)
            }
            (before, last) = (last, row)
        }
        return last[b.count]
    }
}
