// What a response may depend on although its Vary does not name it: known request fields, and the values that a response repeats
// (docs/security-model.md#unkeyed-inputs; RFC 9110 §12.5.5).
package import HTTPTypes

/// Completes the Vary of a response before it is stored.
///
/// If an origin uses one of these request fields to generate the response but omits it from Vary, the first client would determine the
/// response for all later clients. A repeated request with the same fields is still served from the cache.
package enum ImpliedVary {
    /// True if a name may have been added to Vary: added names are written in lower case.
    static func isAdded(_ name: HTTPField.Name) -> Bool {
        guard name.rawName == name.canonicalName else { return false }
        let kind = UnkeyedField(name)
        return candidates.contains(name) || [.selects, .unknown].contains(kind)
    }

    /// True if a name in the Vary of a stored response may say what was found out about its bytes.
    static func describesCopy(_ name: HTTPField.Name) -> Bool {
        isAdded(name) || name.rawName == name.canonicalName && UnkeyedField(name) == .describes
    }

    private static let candidates: [HTTPField.Name] = [.origin, .accept, .acceptEncoding, .cookie, .gitProtocol]

    /// `head` with a Vary that also names
    /// - `Accept-Encoding` if the content is coded: a client without that coding cannot read it;
    /// - `Origin` if the request carries one: few other clients send it, and permissions for one origin do not apply to another;
    /// - `Accept` if it does not permit the type of the response, or not that of another stored response of the key: then the preference or the
    ///   response is unusual, or the origin selects the type by it;
    /// - `Cookie` if the response is `private` and the request has Basic credentials: one password may be that of a whole site, and the user is
    ///   told by a cookie;
    /// - `Git-Protocol` if the response is one of git: it selects the version of the protocol, which an older client cannot read;
    /// - every field of the request that selects, and every one whose value the head repeats (`UnkeyedField`, `EchoSearch`).
    /// - Parameters:
    ///   - repeating: the fields whose values may be the request's; nil for all. What has not changed was searched when it was stored.
    ///   - selectsType: true if another stored response of the key has a type that the request's `Accept` does not permit.
    ///   - isPrivate: true if all of the response is `private`; evaluated only where it counts.
    package static func completed(
        _ head: ResponseHead, for request: RequestHead, repeating: HTTPFields? = nil, selectsType: Bool = false,
        isPrivate: @autoclosure () -> Bool
    ) -> ResponseHead {
        guard let named = Vary.names(in: head.fields) else { return head }
        let added = added(to: named, of: head, for: request, selectsType: selectsType, isPrivate: isPrivate())
        let repeating = repeating ?? head.fields
        var search = repeating.isEmpty ? nil : EchoSearch(for: request)
        search?.read(repeating)
        return varying(head, by: added + (search?.found ?? []))
    }

    /// The names that are added to these ones in any case, whatever the head repeats.
    static func added(
        to named: [HTTPField.Name], of head: ResponseHead, for request: RequestHead, selectsType: Bool = false,
        isPrivate: @autoclosure () -> Bool
    ) -> [HTTPField.Name] {
        let suspected = candidates.filter {
            !named.contains($0)
                && ($0 == .accept && selectsType || isSuspected($0, in: head, to: request, isPrivate: isPrivate()))
        }
        return suspected + request.fields.selectingNames.filter { !named.contains($0) }
    }

    /// `head` with a Vary that also has these names.
    package static func varying(_ head: ResponseHead, by names: [HTTPField.Name]) -> ResponseHead {
        guard !names.isEmpty, var named = Vary.names(in: head.fields) else { return head }
        var varying = head
        for name in names where !named.contains(name) {
            varying.fields.append(HTTPField(name: .vary, value: name.canonicalName))
            named.append(name)
        }
        return varying
    }

    private static func isSuspected(
        _ name: HTTPField.Name, in head: ResponseHead, to request: RequestHead, isPrivate: @autoclosure () -> Bool
    ) -> Bool {
        if name == .gitProtocol { return RepositoryExchange.part(head) == .fetch }
        if name == .acceptEncoding { return ContentCoding.isCoded(head.fields) }
        if name == .cookie { return request.fields[.authorization]?.prefix(6).lowercased() == "basic " && isPrivate() }
        guard let value = request.fields.value(of: name.canonicalName) else { return false }
        return name == .origin || !MediaType.isAccepted(head.fields, by: value)
    }
}

/// One pass over a response for the values of the fields that nothing else is known of (`UnkeyedField`).
package struct EchoSearch: Sendable {
    /// The fields that are searched for; the search knows them by their places here.
    private let names: [HTTPField.Name]
    private var search: TextSearch
    /// Fields whose values may occur in the response without being found.
    private var unseen: [HTTPField.Name] = []
    private let unknown: [HTTPField.Name]

    /// Shorter values, such as `1` or `on`, occur in most responses by chance.
    private static let leastLength = 4
    /// Shorter values count as whole words only.
    private static let wordLength = 8
    private static let textLimit = 24

    /// Nil if the request has no field to look for.
    package init?(for request: RequestHead) {
        var (names, texts, unknown, unseen): ([HTTPField.Name], [TextSearch.Text], [HTTPField.Name], [HTTPField.Name]) = ([], [], [], [])
        for field in request.fields where Self.isSearched(field) {
            let kind = UnkeyedField(field.name)
            guard kind == .unknown || kind == .describes else { continue }
            if kind == .unknown { unknown.append(field.name) }
            let forms = Self.forms(of: field.valueBytes, isEscaped: kind == .unknown)
            // Of more fields than programs send, any may be repeated.
            guard texts.count + forms.count <= Self.textLimit else {
                if kind == .unknown { unseen.append(field.name) }
                continue
            }
            texts += forms.map { TextSearch.Text(bytes: $0, owner: names.count, isWord: $0.count < Self.wordLength) }
            names.append(field.name)
        }
        if texts.isEmpty, unseen.isEmpty { return nil }
        (self.names, search, self.unknown, self.unseen) = (names, TextSearch(texts), unknown, unseen)
    }

    /// The names of the fields whose values were found, or may be there unseen, each once.
    package var found: [HTTPField.Name] {
        var found: [HTTPField.Name] = []
        for (place, name) in names.enumerated() where search.found >> UInt64(place) & 1 == 1 && !found.contains(name) { found.append(name) }
        for name in unseen where !found.contains(name) { found.append(name) }
        return found
    }

    /// True for a value that is long enough to tell something, and no word of every JSON document.
    static func isSearched(_ field: HTTPField) -> Bool {
        field.value.utf8.count >= leastLength && !["true", "false", "null"].contains(field.value)
    }

    /// A value as texts of HTML and JSON, and a URL, have it.
    private static func forms(of value: [UInt8], isEscaped: Bool) -> Set<[UInt8]> {
        func form(_ escape: (UInt8) -> [UInt8]?) -> [UInt8] {
            Array(value.prefix(TextSearch.mostLength).flatMap { escape($0) ?? [$0] }.prefix(TextSearch.mostLength))
        }
        guard isEscaped else { return [form { _ in nil }] }
        return [
            form { _ in nil }, form { html[$0].map { Array($0.utf8) } },
            form { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") ? [UInt8(ascii: "\\"), $0] : nil },
            form { $0 == UInt8(ascii: "/") ? [UInt8(ascii: "\\"), $0] : nil },
            form { FieldByte.isUnreserved($0) ? nil : [UInt8(ascii: "%")] + hex($0) },
        ]
    }

    private static let html: [UInt8: String] = [0x26: "&amp;", 0x3C: "&lt;", 0x3E: "&gt;", 0x22: "&quot;", 0x27: "&#39;"]

    private static func hex(_ byte: UInt8) -> [UInt8] { Array(((byte < 16 ? "0" : "") + String(byte, radix: 16)).utf8) }

    // MARK: - Search

    /// Searches the values of fields. `Vary` has names of fields, not values.
    package mutating func read(_ fields: HTTPFields) {
        for field in fields where field.name != .vary {
            read(field.value.utf8.span)
            end()
        }
    }

    /// Searches the next bytes of the body.
    package mutating func read(_ bytes: Span<UInt8>) { search.read(bytes) }

    /// Ends a text: what follows is another one.
    package mutating func end() { search.end() }

    /// Takes the rest for a text that may repeat the value of every unknown field.
    package mutating func cannotRead() { unseen += unknown }

    /// What of a response can be searched.
    package enum Content: Sendable {
        case plain
        /// In the coding of the head, which can be undone.
        case coded
        /// In a coding that cannot.
        case unreadable
        /// Pictures, sound and archives, which repeat no text.
        case media
    }

    package static func content(of head: ResponseHead) -> Content {
        if let type = MediaType.essence(of: head.fields), isMedia(type) { return .media }
        guard ContentCoding.isCoded(head.fields) else { return .plain }
        return head.status != 206 && ContentCoding.isDecodable(head.fields) ? .coded : .unreadable
    }

    private static func isMedia(_ type: String) -> Bool {
        if type == "image/svg+xml" { return false }
        return ["image/", "audio/", "video/", "font/"].contains { type.hasPrefix($0) }
            || ["application/zip", "application/gzip", "application/x-gzip", "application/x-tar", "application/x-xz", "application/zstd"]
                .contains(type)
    }
}

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
        var length = 1
        for text in all {
            length += text.bytes.count
            for byte in text.bytes where classes[Int(byte)] == 0 {
                classes[Int(byte)] = UInt8(truncatingIfNeeded: classCount)
                if FieldByte.isLetter(byte) { classes[Int(byte ^ 0x20)] = classes[Int(byte)] }
                classCount += 1
            }
        }
        table = [Int32](repeating: 0, count: classCount)
        table.reserveCapacity(classCount * length)
        texts.reserveCapacity(length)
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
                table.append(contentsOf: repeatElement(0, count: classCount))
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
