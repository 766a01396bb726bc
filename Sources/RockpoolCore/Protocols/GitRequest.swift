// The requests of git and Git LFS to a server, by what they do and what they ask for (https://git-scm.com/docs/gitprotocol-http;
// https://git-scm.com/docs/gitprotocol-v2; https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md).
import HTTPTypes

/// A request on a route with `kind: git`.
package enum GitExchange: Hashable, Sendable {
    /// The list of references, or what the server can do.
    case references
    /// A question to `git-upload-pack`.
    case fetch
    case push
    /// Where large files are, or may be put.
    case largeFiles
    /// Anything else, such as a file of a repository without a server program, or a large file.
    case file

    package init(_ request: RequestHead) {
        let (path, query) = (request.path, request.target.drop { $0 != "?" }.dropFirst())
        if path.hasSuffix("/info/refs") {
            self = query.contains("service=git-receive-pack") ? .push : .references
        } else if request.method == .post, path.hasSuffix("/git-upload-pack") {
            self = .fetch
        } else if path.hasSuffix("/git-receive-pack") {
            self = .push
        } else if request.method == .post, path.hasSuffix("/info/lfs/objects/batch") {
            self = .largeFiles
        } else {
            self = .file
        }
    }

    /// True for a POST that may be a read.
    package var asksByBody: Bool { self == .fetch || self == .largeFiles }

    /// What changes is asked for anew while the server is there; files are answered as their own fields say.
    package var strategy: Strategy? { self == .file ? nil : .networkFirst }

    /// What its client is told where the server cannot be reached.
    package func refusal(host: String) -> String {
        switch self {
        case .push: "\(host) cannot be reached: nothing was pushed. Push again when it is back."
        case .references, .fetch: "\(host) cannot be reached, and this was not fetched before in such a state."
        case .largeFiles: "\(host) cannot be reached, and was not asked for these files before."
        case .file: "\(host) cannot be reached, and this is not stored."
        }
    }
}

/// The body of a POST to `git-upload-pack` (https://git-scm.com/docs/gitprotocol-pack).
package struct GitRequest: Hashable, Sendable {
    package enum Kind: Hashable, Sendable { case references, fetch, other }

    package private(set) var kind = Kind.other
    /// True in version 2 of the protocol; versions 0 and 1 have the same form.
    package let isVersion2: Bool
    /// What its answer depends on: without the name of the client's program, and whether it shows progress.
    package private(set) var key: [UInt8] = []
    /// The objects that it wants and has, by their names in hexadecimal digits.
    package private(set) var wants: [String] = []
    package private(set) var haves: [String] = []
    /// True if the client will say no more about what it has.
    package private(set) var isDone = false
    /// True if the answer is a pack with the whole history of what is wanted, as far as the client has not got it.
    package private(set) var isComplete = false
    /// True if objects are named by SHA-256.
    package private(set) var usesSHA256 = false
    /// What the client of versions 0 and 1 understands, as it says in its first line.
    private var capabilities: [String] = []
    /// The question to send in its place, so that every client asks for the same references; nil for the client's own.
    package private(set) var replacement: [UInt8]?

    /// Nil if the body is not such a request.
    package init?(body: [UInt8]) {
        guard let packets = GitPacket.all(in: body), let first = packets.first?.text else { return nil }
        isVersion2 = first.hasPrefix("command=")
        if isVersion2 { readCommand(packets) } else if first.hasPrefix("want ") { readWants(packets) } else { return nil }
    }

    // MARK: - Version 2

    private mutating func readCommand(_ packets: [GitPacket]) {
        let lines = packets.split(separator: .delimiter, maxSplits: 1).map { $0.compactMap(\.text) }
        let capabilities = lines.first ?? []
        var arguments = lines.dropFirst().first ?? []
        let lasting = capabilities.filter { !Self.names(aProgram: $0) }
        usesSHA256 = capabilities.contains(Self.sha256)
        switch capabilities.first {
        case "command=ls-refs":
            kind = .references
            let prefixes = arguments.filter { $0.hasPrefix(Self.prefix) }.map { String($0.dropFirst(Self.prefix.count)) }
            if !prefixes.isEmpty, prefixes.allSatisfy(Self.isUsual) {
                let options = arguments.filter { !$0.hasPrefix(Self.prefix) }
                arguments = options + Self.usual.map { Self.prefix + $0 }
                replacement =
                    capabilities.flatMap { GitPacket.line($0) } + GitPacket.delimiterBytes + arguments.flatMap { GitPacket.line($0) }
                    + GitPacket.flushBytes
            }
            // A client takes what it has not asked for, such as the target of a symbolic reference.
            arguments.removeAll { ["peel", "symrefs", "unborn"].contains($0) }
        case "command=fetch":
            kind = .fetch
            read(arguments)
            isComplete =
                arguments.allSatisfy { Self.plainOptions.contains($0) || Self.names(anObject: $0) } && !wants.isEmpty
            arguments.removeAll { $0 == "no-progress" }
        default: break
        }
        setKey(lasting, arguments)
    }

    private static let prefix = "ref-prefix "
    /// What a clone asks for.
    private static let usual = ["HEAD", "refs/heads/", "refs/tags/"]

    /// True for references that a clone asks for, too.
    private static func isUsual(_ prefix: String) -> Bool { usual.contains { $0.hasSuffix("/") ? prefix.hasPrefix($0) : prefix == $0 } }

    // MARK: - Versions 0 and 1

    private mutating func readWants(_ packets: [GitPacket]) {
        kind = .fetch
        var lines = packets.compactMap(\.text)
        // The first line has the capabilities.
        let words = lines[0].split(separator: " ").map { String($0) }
        let capabilities = words.dropFirst(2).filter { !Self.names(aProgram: $0) && $0 != "no-progress" }
        lines[0] = words.prefix(2).joined(separator: " ")
        read(lines)
        self.capabilities = Array(capabilities)
        // git does not name the format here; the names of objects have 64 digits then.
        usesSHA256 = capabilities.contains(Self.sha256) || words.dropFirst().first?.utf8.count == 64
        isComplete = capabilities.contains("side-band-64k") && lines.allSatisfy { $0 == "done" || Self.names(anObject: $0) }
        setKey(self.capabilities, lines)
    }

    // MARK: - The answer

    /// What an answer with a pack begins with.
    /// - Parameter bases: the objects of the client on which the pack builds.
    /// - Returns: The bytes, and whether the pack follows at once; else the client agrees first.
    package func introduction(bases: [String]) -> (bytes: [UInt8], hasPack: Bool) {
        let acknowledged = { (end: String) in bases.flatMap { GitPacket.line("ACK " + $0 + end) } }
        guard isVersion2 else {
            let last = bases.last.map { GitPacket.line("ACK " + $0) }
            if isDone { return (last ?? Self.nothingCommon, true) }
            guard let base = bases.last, let last, capabilities.contains("multi_ack_detailed") else { return (Self.nothingCommon, false) }
            let agreed = acknowledged(" common") + GitPacket.line("ACK \(base) ready") + Self.nothingCommon
            return capabilities.contains("no-done") ? (agreed + last, true) : (agreed, false)
        }
        let pack = GitPacket.line("packfile")
        if isDone { return (pack, true) }
        let beginning = GitPacket.line("acknowledgments")
        // What the client has is not agreed on yet, and it may have more to say.
        if bases.isEmpty { return (beginning + Self.nothingCommon + GitPacket.flushBytes, false) }
        return (beginning + acknowledged("") + GitPacket.line("ready") + GitPacket.delimiterBytes + pack, true)
    }

    private static let nothingCommon = GitPacket.line("NAK")

    // MARK: - Both

    private mutating func read(_ lines: [String]) {
        for line in lines {
            if line == "done" { isDone = true }
            let words = line.split(separator: " ", maxSplits: 1)
            guard words.count == 2 else { continue }
            if words[0] == "want" { wants.append(String(words[1])) }
            if words[0] == "have" { haves.append(String(words[1])) }
        }
    }

    private mutating func setKey(_ capabilities: [String], _ arguments: [String]) {
        let text = capabilities.joined(separator: "\n") + "\n\n" + arguments.joined(separator: "\n")
        key = Array(text.utf8)
    }

    private static func names(aProgram capability: String) -> Bool {
        capability.hasPrefix("agent=") || capability.hasPrefix("session-id=")
    }

    private static func names(anObject line: String) -> Bool { line.hasPrefix("want ") || line.hasPrefix("have ") }

    private static let sha256 = "object-format=sha256"
    private static let plainOptions: Set<String> = ["thin-pack", "no-progress", "include-tag", "ofs-delta", "done"]
}

/// A question where large files are.
package struct LargeFileRequest: Hashable, Sendable {
    /// A file, by the digest of its content.
    private struct File: Hashable, Sendable {
        let digest: String
        let size: JSONValue
    }

    /// What its answer depends on: clients name the files, and the ways in which they can fetch them, in any order.
    package let key: [UInt8]
    private let files: [File]
    /// The function of the digests.
    private let hash: JSONValue?

    /// Nil for a body that asks something else, such as where files may be put.
    package init?(body: [UInt8]) {
        guard var request = (try? JSONValue.parse(body))?.object, request["operation"]?.string == "download",
            let objects = request["objects"]?.array
        else { return nil }
        var files: [File] = []
        for object in objects {
            guard let digest = object["oid"]?.string, let size = object["size"] else { return nil }
            files.append(File(digest: digest, size: size))
        }
        self.files = files
        hash = request["hash_algo"]
        for name in ["objects", "transfers"] { request[name] = request[name]?.array.map { .array(Self.sorted($0)) } }
        key = JSONValue.object(JSONObject(request.sorted { $0.name < $1.name }.map { ($0.name, $0.value) })).serialized()
    }

    /// An answer put together from earlier answers; nil if they name none of the files. Its addresses do not expire, because the files are
    /// stored under them.
    /// - Parameters:
    ///   - answers: the newest first.
    ///   - lack: what is said of a file that none of them names.
    package func answer(from answers: [JSONValue], lack: String) -> JSONValue? {
        var known: [String: JSONValue] = [:]
        for answer in answers where isBasic(answer) {
            for object in answer["objects"]?.array ?? [] {
                guard let digest = object["oid"]?.string, object["actions"]?["download"]?["href"]?.string != nil else { continue }
                if known[digest] == nil { known[digest] = Self.lasting(object) }
            }
        }
        guard files.contains(where: { known[$0.digest] != nil }) else { return nil }
        var answer: JSONValue = ["transfer": "basic"]
        let error: JSONValue = ["code": 503, "message": .string(lack)]
        answer["objects"] = .array(files.map { known[$0.digest] ?? ["oid": .string($0.digest), "size": $0.size, "error": error] })
        answer["hash_algo"] = hash
        return answer
    }

    /// True for an answer of which every client can make use.
    private func isBasic(_ answer: JSONValue) -> Bool {
        (answer["transfer"]?.string ?? "basic") == "basic" && (answer["hash_algo"]?.string ?? "sha256") == (hash?.string ?? "sha256")
    }

    private static func sorted(_ values: [JSONValue]) -> [JSONValue] {
        values.map { ($0, $0.serialized()) }.sorted { $0.1.lexicographicallyPrecedes($1.1) }.map { $0.0 }
    }

    private static func lasting(_ value: JSONValue) -> JSONValue {
        guard let members = value.object else { return value }
        return .object(
            JSONObject(members.filter { $0.name != "expires_at" && $0.name != "expires_in" }.map { ($0.name, lasting($0.value)) }))
    }
}
