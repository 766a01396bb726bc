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

/// A range of the old list and its replacement in the new list; one of the two may be empty.
struct LineHunk: Hashable {
    var old: Range<Int>
    var new: Range<Int>
}

enum LineDifference {
    /// The maximum number of lines of one text.
    static let lineLimit = 10_000
    /// The maximum number of lines removed and added: time grows with lines × edits, memory with edits².
    static let editLimit = 400

    /// Returns the ranges that differ, in order, with at least one common line between two of them; nil past the limits.
    static func hunks(from old: [Int], to new: [Int]) -> [LineHunk]? {
        guard old.count <= lineLimit, new.count <= lineLimit else { return nil }
        let head = zip(old, new).prefix { $0 == $1 }.count
        let tail = zip(old.dropFirst(head).reversed(), new.dropFirst(head).reversed()).prefix { $0 == $1 }.count
        guard let steps = edits(old: Array(old[head..<old.count - tail]), new: Array(new[head..<new.count - tail])) else { return nil }
        var hunks: [LineHunk] = []
        for step in steps {
            let (old, new) = (step.old + head, step.new + head)
            let hunk = LineHunk(old: old..<old + (step.isRemoval ? 1 : 0), new: new..<new + (step.isRemoval ? 0 : 1))
            if let last = hunks.last, last.old.upperBound == hunk.old.lowerBound, last.new.upperBound == hunk.new.lowerBound {
                hunks[hunks.count - 1] = LineHunk(
                    old: last.old.lowerBound..<hunk.old.upperBound, new: last.new.lowerBound..<hunk.new.upperBound)
            } else {
                hunks.append(hunk)
            }
        }
        return hunks
    }

    /// The removal or addition of one line, at these positions of the two lists.
    private struct Edit {
        var (old, new): (Int, Int)
        var isRemoval: Bool
    }

    /// Returns the shortest edit script. Row `d` of `rows` contains, for each diagonal k = -d, -d+2 … d, the position in `old` that `d`
    /// edits reach.
    private static func edits(old: [Int], new: [Int]) -> [Edit]? {
        var rows: [[Int]] = []
        for d in 0...min(editLimit, old.count + new.count) {
            var row: [Int] = []
            row.reserveCapacity(d + 1)
            for place in 0...d {
                let k = 2 * place - d
                var x = d == 0 ? 0 : isAddition(rows[d - 1], at: place) ? rows[d - 1][place] : rows[d - 1][place - 1] + 1
                while x < old.count, x - k < new.count, x - k >= 0, old[x] == new[x - k] { x += 1 }
                row.append(x)
                if x >= old.count, x - k >= new.count { return script(from: rows + [row], to: place) }
            }
            rows.append(row)
        }
        return nil
    }

    /// True if the path to this place of the next row comes from the diagonal above, which adds a line; false if from the diagonal below.
    private static func isAddition(_ row: [Int], at place: Int) -> Bool {
        place == 0 || place < row.count && row[place - 1] < row[place]
    }

    private static func script(from rows: [[Int]], to end: Int) -> [Edit] {
        var edits: [Edit] = []
        var place = end
        for d in stride(from: rows.count - 1, to: 0, by: -1) {
            let isAddition = isAddition(rows[d - 1], at: place)
            if !isAddition { place -= 1 }
            let x = rows[d - 1][place]
            edits.append(Edit(old: x, new: x - (2 * place - (d - 1)), isRemoval: !isAddition))
        }
        return edits.reversed()
    }
}
