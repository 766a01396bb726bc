// What a client of Git LFS asks, and the answer from those to others (https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md).

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

    /// The answer made of those to others; nil if they name none of the files. Its addresses do not end, because the files are stored under
    /// them.
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
