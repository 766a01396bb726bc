// Searches of short words in heads and bodies of requests. The standard library's search builds tables for each call, which cost more than
// the whole search of a short text.

/// A search of an ASCII word.
enum WordSearch {
    /// True if the bytes contain `word`.
    /// - Parameter anyCase: true if capital letters of the bytes count as small ones; the word has none then.
    static func finds(_ word: StaticString, in text: Span<UInt8>, anyCase: Bool = false) -> Bool {
        let length = word.utf8CodeUnitCount
        guard length > 0, text.count >= length else { return length == 0 }
        for start in 0...(text.count - length) {
            var index = 0
            while index < length {
                let byte = text[start + index]
                let isCapital = anyCase && 0x41...0x5A ~= byte
                guard unsafe (isCapital ? byte | 0x20 : byte) == word.utf8Start[index] else { break }
                index += 1
            }
            if index == length { return true }
        }
        return false
    }
}

extension String {
    /// True if the text contains `word`, whose letters are small ones, in any case of ASCII letters.
    package func contains(anyCase word: StaticString) -> Bool {
        WordSearch.finds(word, in: utf8.span, anyCase: true)
    }
}

extension [UInt8] {
    /// True if the bytes contain `word`.
    func holds(_ word: StaticString) -> Bool { WordSearch.finds(word, in: span) }
}
