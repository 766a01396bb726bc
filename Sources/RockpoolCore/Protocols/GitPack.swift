// A list of references, as `ls-refs` of version 2 answers it and versions 0 and 1 advertise it (https://git-scm.com/docs/gitprotocol-v2;
// https://git-scm.com/docs/gitprotocol-pack), and packs that were fetched.
import HTTPTypes

/// The references of a repository at one moment.
package struct GitReferences: Hashable, Sendable {
    /// A reference with what it points to.
    private struct Reference: Hashable, Sendable {
        /// The object's name in hexadecimal digits; nil for a `HEAD` whose branch has no commit.
        let object: String?
        let name: [UInt8]
        /// The packets that name it: in versions 0 and 1 a tag has a second one with its commit.
        var lines: [[UInt8]]
    }

    /// What precedes the first reference.
    private var introduction: [GitPacket] = []
    /// What the server can do, behind the first reference in versions 0 and 1.
    private var capabilities: [UInt8]?
    private var references: [Reference] = []

    /// Nil if an answer is no list of references.
    package init?(_ answer: [UInt8]) {
        guard var packets = GitPacket.all(in: answer), packets.popLast() == .flush else { return nil }
        let isIntroduction = { (packet: GitPacket) in
            packet == .flush || packet.text?.hasPrefix("# service=") == true || packet.text == "version 1"
        }
        introduction = Array(packets.prefix(while: isIntroduction))
        for packet in packets.dropFirst(introduction.count) {
            guard case .data(let bytes) = packet, add(bytes) else { return nil }
        }
    }

    private mutating func add(_ bytes: [UInt8]) -> Bool {
        let halves = bytes.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
        if halves.count == 2 {
            guard references.isEmpty, capabilities == nil else { return false }
            capabilities = Array(halves[1])
        }
        let words = halves[0].split(separator: Self.space, maxSplits: 2)
        guard words.count >= 2 else { return false }
        let (object, name, line) = (String(decoding: words[0], as: UTF8.self), Array(words[1]), Array(halves[0]))
        if let last = references.last, name == last.name + Self.peeled {
            references[references.count - 1].lines.append(line)
            return Self.isObject(object)
        }
        guard object == "unborn" || Self.isObject(object) else { return false }
        references.append(Reference(object: object == "unborn" ? nil : object, name: name, lines: [line]))
        return true
    }

    /// The objects that it names.
    package var objects: Set<String> { Set(references.compactMap(\.object)) }

    /// The list without references to missing objects: such a reference keeps its earlier object, or is left out.
    /// - Parameters:
    ///   - fetched: the objects that can be had; without any, the list stays as it is.
    ///   - before: the list that was followed last.
    package func followable(_ fetched: Set<String>, before: GitReferences?) -> GitReferences {
        let earlier = Dictionary((before?.references ?? []).map { ($0.name, $0) }) { first, _ in first }
        var list = self
        list.references = references.compactMap { reference in
            guard let object = reference.object, !fetched.contains(object) else { return reference }
            return earlier[reference.name].flatMap { $0.object.map(fetched.contains) == true ? $0 : nil }
        }
        return list.objects.isEmpty ? self : list
    }

    /// The answer that lists them.
    package var bytes: [UInt8] {
        var lines = references.flatMap(\.lines)
        if let capabilities, !lines.isEmpty { lines[0] += [0] + capabilities }
        return introduction.flatMap(\.bytes) + lines.flatMap { GitPacket.data($0).bytes } + GitPacket.flushBytes
    }

    private static let space = UInt8(ascii: " ")
    private static let peeled = Array("^{}".utf8)

    /// True for the name of an object, by SHA-1 or SHA-256.
    private static func isObject(_ text: String) -> Bool {
        [40, 64].contains(text.utf8.count) && text.utf8.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
    }
}

/// One packet (https://git-scm.com/docs/gitprotocol-common).
package enum GitPacket: Hashable, Sendable {
    /// Of a text, without the line feed at its end.
    case data([UInt8])
    case flush, delimiter, end

    /// The largest packet, its length included.
    package static let limit = 65_520

    /// The packets of a message; nil if it is none.
    package static func all(in bytes: [UInt8]) -> [GitPacket]? {
        var (packets, index) = ([GitPacket](), 0)
        while index < bytes.count {
            guard let length = length(in: bytes[index...]) else { return nil }
            switch length {
            case 0: packets.append(.flush)
            case 1: packets.append(.delimiter)
            case 2: packets.append(.end)
            case 4...:
                guard index + length <= bytes.count else { return nil }
                var data = bytes[(index + 4)..<(index + length)]
                if data.last == 0x0A { data.removeLast() }
                packets.append(.data(Array(data)))
            default: return nil
            }
            index += max(4, length)
        }
        return packets
    }

    /// The length that the first four bytes of a packet say; nil if they are not there, or are none.
    package static func length(in bytes: some Collection<UInt8>) -> Int? {
        let digits = bytes.prefix(4)
        guard digits.count == 4 else { return nil }
        return digits.reduce(0 as Int?) { value, digit in
            guard let value, let next = Character(Unicode.Scalar(digit)).hexDigitValue else { return nil }
            return value * 16 + next
        }
    }

    /// A packet with a line of text.
    package static func line(_ text: String) -> [UInt8] { GitPacket.data(Array(text.utf8)).bytes }

    /// The packet as it is sent, with the line feed at the end of its data.
    package var bytes: [UInt8] {
        switch self {
        case .data(let data): Self.length(data.count + 5) + data + [0x0A]
        case .flush: Self.flushBytes
        case .delimiter: Self.delimiterBytes
        case .end: Array("0002".utf8)
        }
    }

    /// The beginning of a packet of `count` bytes, its own four included.
    package static func length(_ count: Int) -> [UInt8] {
        let digits = String(count, radix: 16)
        return Array((String(repeating: "0", count: max(0, 4 - digits.utf8.count)) + digits).utf8)
    }

    package static let flushBytes = Array("0000".utf8)
    package static let delimiterBytes = Array("0001".utf8)

    /// The text of a packet of data; nil for any other.
    var text: String? { if case .data(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { nil } }
}

// MARK: - Packs

/// The content of a stored answer to a fetch: the history of the wanted objects without that of the objects that its client had
/// (https://git-scm.com/docs/gitformat-pack).
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

extension StoredResponse {
    /// What the pack of an answer to a fetch from git holds.
    package var pack: StoredPack? {
        get { requestFields[.rockpoolPack].flatMap { StoredPack(note: $0) } }
        set { requestFields[.rockpoolPack] = newValue?.note }
    }
}
