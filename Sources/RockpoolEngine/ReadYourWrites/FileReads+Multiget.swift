// Files that a multiget names and that are stored, whichever request fetched them (RFC 4791 §7.9, RFC 6352 §8.7;
// docs/outbox.md#files-and-collections).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension FileReads {
    /// The most bytes of files that one answer is made of.
    private static let knownLimit = Int.mib(32)
    /// The most stored answers of a collection that are searched for a file.
    private static let answerLimit = 16

    /// The element of a file, and when it was asked for.
    private struct KnownFile {
        var element: [UInt8]
        var asked: Tick
    }

    /// Returns a document of the named files that the server has, from the copies of their reads and from earlier multigets; nil if one of
    /// them is not known here.
    func knownFiles(_ named: [FilePath], asked: PropertyRequest, open: FileFold, for context: RequestContext) async -> Multistatus? {
        let open = open.indexed
        let asOfServer = named.filter { if case .server = open.state(of: $0) { true } else { false } }
        guard !asOfServer.isEmpty else { return .empty }
        let answers = await storedAnswers(for: context)
        var (elements, room) = ([[UInt8]](), Self.knownLimit)
        for path in asOfServer {
            guard !Task.isCancelled else { return nil }
            let known = [await fetched(path, asked: asked, for: context), Self.element(of: path, in: answers, asked: asked)]
            guard let newest = known.compactMap(\.self).max(by: { $0.asked < $1.asked }), newest.element.count <= room else {
                return nil
            }
            room -= newest.element.count
            elements.append(newest.element)
        }
        return Multistatus(Multistatus.empty.with(elements))
    }

    /// Returns what a read of the file gives while its server is away; nil if that is no file.
    private func fetched(_ path: FilePath, asked: PropertyRequest, for context: RequestContext) async -> KnownFile? {
        guard let upstream = context.plan.upstream?.name else { return nil }
        var read = context.readFromStore(of: path.target)
        let view = FileView(upstream: upstream, principal: context.identity.principal, path: path)
        var reply = await readFile(in: view, for: &read)
        guard reply.head.status == 200, !reply.head.fields.contains(.contentEncoding), var write = FileWrite(read.request.asPut),
            let bytes = await ownWrites.bytes(of: &reply)
        else { return nil }
        let fields = reply.head.fields
        write.contentType = fields[.contentType]
        write.length = Int64(bytes.readableBytes)
        write.at = fields[.lastModified].flatMap { HTTPDate.parse($0, now: ownWrites.now()) } ?? ownWrites.now()
        let element = asked.response(
            for: path, write, isCollection: false, etag: fields[.eTag], content: asked.readsContents ? Array(bytes.readableBytesView) : nil)
        return KnownFile(element: element, asked: read.trace.includes ?? ownWrites.cache.ticks.next())
    }

    /// Returns the stored answers to reports of the collection, the newest first.
    private func storedAnswers(for context: RequestContext) async -> [(document: Multistatus, asked: Tick)] {
        let readable = StoragePartition.readable(by: context.identity.partition)
        var answers: [(document: Multistatus, asked: Tick)] = []
        for target in FilePath(context.request.target).targets {
            let url = context.request.origin.url + target
            for copy in (try? await ownWrites.cache.copies(ofPath: url, in: readable, limit: Self.answerLimit)) ?? []
            where copy.key.method == "REPORT" && copy.response.head.status == 207 {
                guard let bytes = try? await ownWrites.reads.lookup.content(of: copy, limit: Int.mib(1)), let document = Multistatus(bytes)
                else { continue }
                answers.append((document, copy.response.asked))
            }
        }
        return answers.sorted { $0.asked > $1.asked }
    }

    private static func element(
        of path: FilePath, in answers: [(document: Multistatus, asked: Tick)], asked: PropertyRequest
    ) -> KnownFile? {
        for (document, askedAt) in answers {
            guard let response = document.response(at: path) else { continue }
            let element = document.exported(response, at: path)
            if asked.isAnswered(by: element) { return KnownFile(element: element, asked: askedAt) }
        }
        return nil
    }
}
