// A list of references, as `ls-refs` of version 2 answers it and versions 0 and 1 advertise it (https://git-scm.com/docs/gitprotocol-v2;
// https://git-scm.com/docs/gitprotocol-pack).

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

    /// The list as it can be followed: a reference whose object is not to be had is shown as it was before, or left out.
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
