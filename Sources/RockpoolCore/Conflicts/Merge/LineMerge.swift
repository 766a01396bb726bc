// Three-way merging of text by lines (diff3): a change by one side is taken, changes by both must be equal.

enum LineMerge {
    /// Returns the merged text; nil where changes of both sides overlap or touch, or where a side has too many lines or changes.
    static func merged(base: String, mine: String, theirs: String) -> String? {
        var lines = LineNumbers()
        let (base, mine, theirs) = (lines.numbers(of: base), lines.numbers(of: mine), lines.numbers(of: theirs))
        guard let mineHunks = LineDifference.hunks(from: base, to: mine), let theirHunks = LineDifference.hunks(from: base, to: theirs)
        else { return nil }
        var (mineLeft, theirsLeft) = (mineHunks[...], theirHunks[...])
        var (merged, position): ([Int], Int) = ([], 0)
        while let start = [mineLeft.first, theirsLeft.first].compactMap({ $0?.old.lowerBound }).min() {
            // Hunks that touch are merged as one: adjacent lines written independently need not make sense together.
            var region = start..<start
            var (mineHere, theirsHere): ([LineHunk], [LineHunk]) = ([], [])
            while true {
                if let hunk = mineLeft.first, hunk.old.lowerBound <= region.upperBound {
                    mineHere.append(mineLeft.removeFirst())
                    region = start..<max(region.upperBound, hunk.old.upperBound)
                } else if let hunk = theirsLeft.first, hunk.old.lowerBound <= region.upperBound {
                    theirsHere.append(theirsLeft.removeFirst())
                    region = start..<max(region.upperBound, hunk.old.upperBound)
                } else {
                    break
                }
            }
            merged += base[position..<start]
            position = region.upperBound
            let ours = mine[counterpart(of: region, in: mineHere)]
            let others = theirs[counterpart(of: region, in: theirsHere)]
            if theirsHere.isEmpty || !mineHere.isEmpty && ours == others {
                merged += ours
            } else if mineHere.isEmpty {
                merged += others
            } else {
                return nil
            }
        }
        return lines.text(of: merged + base[position...])
    }

    /// Returns the lines of a side for a region of the base, from its hunks there; empty for a side without a hunk there.
    private static func counterpart(of region: Range<Int>, in hunks: [LineHunk]) -> Range<Int> {
        guard let first = hunks.first, let last = hunks.last else { return 0..<0 }
        let start = first.new.lowerBound - (first.old.lowerBound - region.lowerBound)
        return start..<last.new.upperBound + (region.upperBound - last.old.upperBound)
    }
}

/// Lines mapped to numbers: lines with equal bytes have the same number.
private struct LineNumbers {
    private var known: [ArraySlice<UInt8>: Int] = [:]
    private var lines: [ArraySlice<UInt8>] = []

    mutating func numbers(of text: String) -> [Int] {
        Array(text.utf8).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            if let number = known[line] { return number }
            known[line] = lines.count
            lines.append(line)
            return lines.count - 1
        }
    }

    func text(of numbers: [Int]) -> String {
        String(decoding: Array(numbers.map { lines[$0] }.joined(separator: [UInt8(ascii: "\n")])), as: UTF8.self)
    }
}
