// The differences between two lists of lines: the greedy algorithm of Myers (1986), within limits of lines and edits.

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
