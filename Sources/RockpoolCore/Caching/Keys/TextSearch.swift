// Finds several texts in one pass (A. V. Aho and M. J. Corasick, Efficient string matching, 1975), in any case of letters.

/// A search for texts, chunk by chunk. Each byte is one step, however many texts there are.
struct TextSearch: Sendable {
    /// A text to be found.
    struct Text: Sendable {
        /// Not empty, of at most `mostLength` bytes.
        let bytes: [UInt8]
        /// What is found with it, below 64.
        let owner: Int
        /// True if it counts as a whole word only: no letter or digit goes on before or behind it.
        let isWord: Bool
    }

    /// Of a text.
    static let mostLength = 63

    /// The owners whose texts were found, as bits.
    private(set) var found: UInt64 = 0

    private let automaton: Automaton
    private var state = 0
    /// The owners of words that have just ended, unless a letter or digit goes on.
    private var ending: UInt64 = 0
    /// For each of the last 64 bytes, the latest lowest: true for a letter or a digit.
    private var letters: UInt64 = 0

    init(_ texts: [Text]) { automaton = Automaton(texts) }

    /// Searches the next bytes.
    mutating func read(_ bytes: Span<UInt8>) {
        for index in 0..<bytes.count {
            let byte = bytes[index]
            state = automaton.next(state, byte)
            let isLetter = FieldByte.isLetterOrDigit(byte)
            if ending != 0 {
                if !isLetter { found |= ending }
                ending = 0
            }
            letters = letters << 1 | (isLetter ? 1 : 0)
            if automaton.endsText(state) { note() }
        }
    }

    /// Ends a text that was searched: what follows is another one.
    mutating func end() {
        found |= ending
        (state, ending, letters) = (0, 0, 0)
    }

    /// Notes the texts that end here.
    private mutating func note() {
        for text in automaton.ends(at: state) {
            guard text.isWord else {
                found |= 1 << UInt64(text.owner)
                continue
            }
            // It begins where a word does, or where none is.
            let first = UInt64(text.bytes.count) - 1
            let (isInWord, wasInWord) = (letters >> first & 1 == 1, letters >> (first + 1) & 1 == 1)
            if !isInWord || !wasInWord { ending |= 1 << UInt64(text.owner) }
        }
    }
}

/// The beginnings of the texts, and for each of them and each byte the longest beginning that then ends there.
private struct Automaton: Sendable {
    /// Bytes that no text has share the class 0.
    private var classes = [UInt8](repeating: 0, count: 256)
    private var classCount = 1
    /// The next state by state and class.
    private var table: [Int32]
    /// The texts that end in each state.
    private var texts: [[TextSearch.Text]] = [[]]
    private var isEnd: [Bool] = []

    init(_ all: [TextSearch.Text]) {
        for byte in Set(all.lazy.flatMap(\.bytes).map(FieldByte.lowercased)) {
            for same in [byte, byte >= 0x61 && byte <= 0x7A ? byte & ~0x20 : byte] {
                classes[Int(same)] = UInt8(truncatingIfNeeded: classCount)
            }
            classCount += 1
        }
        table = [Int32](repeating: 0, count: classCount)
        for text in all { insert(text) }
        link()
        isEnd = texts.map { !$0.isEmpty }
    }

    /// Adds the states of a text.
    private mutating func insert(_ text: TextSearch.Text) {
        var state = 0
        for byte in text.bytes {
            let place = state * classCount + Int(classes[Int(byte)])
            if table[place] == 0 {
                table[place] = Int32(texts.count)
                texts.append([])
                table += [Int32](repeating: 0, count: classCount)
            }
            state = Int(table[place])
        }
        texts[state].append(text)
    }

    /// Completes the table: where no text goes on, the search goes on with the longest beginning that is an end of what was read.
    private mutating func link() {
        var fallback = [Int](repeating: 0, count: texts.count)
        var queue = (0..<classCount).map { Int(table[$0]) }.filter { $0 != 0 }
        var index = 0
        while index < queue.count {
            let state = queue[index]
            index += 1
            texts[state] += texts[fallback[state]]
            for kind in 0..<classCount {
                let place = state * classCount + kind
                let other = table[fallback[state] * classCount + kind]
                if table[place] == 0 {
                    table[place] = other
                } else {
                    fallback[Int(table[place])] = Int(other)
                    queue.append(Int(table[place]))
                }
            }
        }
    }

    @inline(__always) func next(_ state: Int, _ byte: UInt8) -> Int { Int(table[state * classCount + Int(classes[Int(byte)])]) }

    @inline(__always) func endsText(_ state: Int) -> Bool { isEnd[state] }

    func ends(at state: Int) -> [TextSearch.Text] { texts[state] }
}
