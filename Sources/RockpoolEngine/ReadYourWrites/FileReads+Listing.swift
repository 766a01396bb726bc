// Listings of collections with the files that their client has written, moved or deleted (RFC 4918 §9.1;
// docs/outbox.md#files-and-collections).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

extension FileReads {
    /// What the server is known to list.
    private struct KnownListing {
        var document: Multistatus
        var reply: Reply?
        /// Own writes that have ended by then are part of it.
        var includes: Tick?
    }

    /// Answers a PROPFIND or a REPORT that is cached by its body; nil for any other request.
    func readListing(_ context: inout RequestContext) async -> Reply? {
        guard let upstream = context.plan.upstream?.name, let body = context.keyedBody, context.plan.entity?.resource == nil,
            let asked = PropertyRequest(context.request, body: Array(body.readableBytesView))
        else { return nil }
        overlay.noteListing(of: asked.depth == .itself ? nil : asked.collection, at: upstream)
        // A coded body could not be changed.
        context.exchange.request.fields[.acceptEncoding] = nil
        let principal = context.identity.principal
        let open = overlay.fold(upstream: upstream, principal: principal, deliveredSince: nil)
        var (inner, base) = (context, KnownListing(document: Multistatus.empty))
        var source = asked.collection
        switch open.state(of: asked.collection) {
        case .absent where asked.named == nil: return missing(context)
        case .content, .absent: base.includes = ownWrites.cache.ticks.next()
        case let state:
            if case .server(let path, _) = state, path != asked.collection {
                inner = context.at(path.target + (context.request.path.hasSuffix("/") ? "/" : ""))
                source = path
            }
            var reply = await ownWrites.reads.readServerState(&inner)
            if source != asked.collection, reply.head.status == 404, inner.trace.verdict != .failed {
                // The upstream has carried out the move already, before its answer is known here.
                (inner, source) = (context, asked.collection)
                reply = await ownWrites.reads.readServerState(&inner)
            }
            context.trace = inner.trace
            let isItsOwn = inner.trace.verdict != .failed
            if isItsOwn, ![207, 404].contains(reply.head.status) { return reply }
            if isItsOwn, reply.head.status == 207, !overlay.covers(upstream: upstream) { return reply }
            if let known = await listing(&reply, isItsOwn: isItsOwn, for: inner, asked: asked, open: open) {
                base = known
            } else {
                let all = overlay.fold(upstream: upstream, principal: principal, deliveredSince: .first)
                if case .server(asked.collection, _) = all.state(of: asked.collection) {
                    return !isItsOwn && all.isWithinNew(asked.collection) ? missing(context) : reply
                }
            }
        }
        let fold = overlay.fold(upstream: upstream, principal: principal, deliveredSince: base.includes ?? .first)
        if case .absent = fold.state(of: asked.collection), asked.named == nil { return missing(context) }
        let changed = await elements(base.document, from: source, asked: asked, fold: fold, for: context)
        if changed == nil, let reply = base.reply { return reply }
        let elements = changed?.all ?? base.document.responses.map { Array(base.document.body[$0.element]) }
        // A listing of the collection above that lacks the path shows that it is not there.
        guard !elements.isEmpty || base.reply?.head.status == 207 else { return base.reply ?? missing(context) }
        var head = base.reply.flatMap { $0.head.status == 207 ? $0.head : nil } ?? ResponseHead(status: 207)
        head.fields = head.fields.ofComputedBody
        head.fields[.contentType] = head.fields[.contentType] ?? "application/xml; charset=utf-8"
        if changed != nil, fold.writes.contains(where: { !$0.isDelivered }) {
            (head.fields[.rockpoolState], head.fields[.cacheControl]) = ("pending", "no-store")
        }
        if changed?.isClear == false { head.fields[.rockpoolDirty] = "1" }
        return Reply(head: head, body: .bytes(ByteBuffer(bytes: base.document.with(elements))), trace: context.trace)
    }

    private func missing(_ context: RequestContext) -> Reply {
        Reply(Problem(.notFound, detail: "\(context.original.path) is not there; its upstream does not know yet"), context.trace)
    }

    /// Returns what the reply, or a stored listing of the collection above, shows; nil if nothing is known.
    private func listing(
        _ reply: inout Reply, isItsOwn: Bool, for context: RequestContext, asked: PropertyRequest, open: FileFold
    ) async -> KnownListing? {
        if isItsOwn, reply.head.status == 404 {
            return KnownListing(document: Multistatus.empty, reply: reply, includes: context.trace.includes)
        }
        if isItsOwn {
            guard !reply.head.fields.contains(.contentEncoding), let bytes = await ownWrites.bytes(of: &reply),
                let document = Multistatus(Array(bytes.readableBytesView))
            else { return nil }
            return KnownListing(document: document, reply: reply, includes: context.trace.includes)
        }
        if let named = asked.named {
            // A multiget of files that are all known here needs no server. Each is known with the writes that were delivered.
            let files = await knownFiles(named, asked: asked, open: open, for: context)
            return files.map { KnownListing(document: $0, includes: ownWrites.cache.ticks.next()) }
        }
        guard context.request.method.rawValue == "PROPFIND", asked.depth != .all else { return nil }
        return await storedListing(around: FilePath(context.request.target), asked: asked, for: context)
    }

    /// Returns what stored listings show of a path: its own with members, else that of the collection above.
    private func storedListing(around path: FilePath, asked: PropertyRequest, for context: RequestContext) async -> KnownListing? {
        for (place, isOwn) in [(path, true), (path.parent ?? path, false)] {
            for target in place.targets {
                guard let known = await storedListing(of: target, for: context), case let document = known.document else { continue }
                let shown = document.responses.filter { $0.path == path || isOwn && asked.depth == .members && $0.path.parent == path }
                // The listing above shows nothing of the members of a collection.
                guard isOwn || asked.depth == .itself || shown.allSatisfy({ !$0.isCollection }) else { return nil }
                let elements = document.with(shown.map { Array(document.body[$0.element]) })
                return Multistatus(elements).map { KnownListing(document: $0, includes: known.includes) }
            }
        }
        return nil
    }

    /// Returns the stored listing of a collection with its members; nil without one.
    private func storedListing(of target: String, for context: RequestContext) async -> KnownListing? {
        var inner = context.at(target, depth: "1")
        inner.plan.strategy = .cacheOnly
        var reply = await ownWrites.reads.readServerState(&inner)
        guard inner.trace.verdict != .failed, reply.head.status == 207, let bytes = await ownWrites.bytes(of: &reply) else { return nil }
        return Multistatus(Array(bytes.readableBytesView)).map { KnownListing(document: $0, includes: inner.trace.includes) }
    }

    /// The elements of a listing with the client's writes.
    private struct ShownElements {
        private(set) var all: [[UInt8]] = []
        private(set) var length = 0
        /// False if the writes are more than are followed.
        var isClear = true
        /// The stored listings of places that files were moved or copied from, by their targets; nil where there is none.
        var origins: [String: Multistatus?] = [:]

        init() {}

        /// What the server lists, without the writes.
        init(ofServer base: Multistatus, at paths: [FilePath]) {
            isClear = false
            for (response, path) in zip(base.responses, paths) { add(base.element(response, at: path)) }
        }

        mutating func add(_ element: [UInt8]) {
            length += element.count
            all.append(element)
        }
    }

    /// The longest listing that is made here, in bytes.
    private static let lengthLimit = Int.mib(32)

    /// Returns the elements of the listing with the client's writes; nil if they change nothing.
    /// - Parameter source: The path that the server knows the collection by.
    private func elements(
        _ base: Multistatus, from source: FilePath, asked: PropertyRequest, fold: FileFold, for context: RequestContext
    ) async -> ShownElements? {
        let paths = base.responses.map { $0.path.moved(from: source, to: asked.collection) ?? $0.path }
        guard let shown = asked.shown(by: fold) else { return ShownElements(ofServer: base, at: paths) }
        let fold = fold.indexed
        var (elements, seen, isChanged) = (ShownElements(), Set<FilePath>(), source != asked.collection)
        for (response, path) in zip(base.responses, paths) where seen.insert(path).inserted {
            guard !Task.isCancelled else { return nil }
            switch fold.state(of: path) {
            case .server(response.path, _): elements.add(base.element(response, at: path))
            case .collection where response.isCollection: elements.add(base.element(response, at: path))
            case .unclear:
                (isChanged, elements.isClear) = (true, false)
                elements.add(base.element(response, at: path))
            case let state:
                isChanged = true
                await add(path, in: state, base: base, asked: asked, to: &elements, for: context)
            }
        }
        for path in shown.subtracting(seen).sorted(by: { $0.text < $1.text }) {
            guard !Task.isCancelled else { return nil }
            guard elements.length <= Self.lengthLimit else { return ShownElements(ofServer: base, at: paths) }
            let state = fold.state(of: path)
            if case .server(path, _) = state { continue }
            if case .absent = state, asked.named == nil { continue }
            if await add(path, in: state, base: base, asked: asked, to: &elements, for: context) { isChanged = true }
        }
        return isChanged ? elements : nil
    }

    /// Adds the element of a file in this state.
    /// - Returns: false if it is not listed.
    @discardableResult
    private func add(
        _ path: FilePath, in state: FileFold.State, base: Multistatus, asked: PropertyRequest, to elements: inout ShownElements,
        for context: RequestContext
    ) async -> Bool {
        let element = await element(of: path, in: state, base: base, asked: asked, among: &elements, for: context)
        if let element { elements.add(element) }
        return element != nil
    }

    /// Returns the element of a file in this state; nil if it is not listed.
    private func element(
        of path: FilePath, in state: FileFold.State, base: Multistatus, asked: PropertyRequest, among elements: inout ShownElements,
        for context: RequestContext
    ) async -> [UInt8]? {
        switch state {
        case .absent: return asked.named == nil ? nil : asked.absence(of: path)
        case .collection(let write): return asked.response(for: path, write, isCollection: true, etag: nil)
        case .unclear:
            elements.isClear = false
            return nil
        case .content(var write):
            var content: [UInt8]?
            if write.sequence > 0, let operation = try? await ownWrites.data.operations(sequences: [write.sequence]).first {
                write.length = operation.body.length
                if asked.readsContents || ChunkedUpload.isUsed(operation.request.fields) {
                    content = (try? ownWrites.data.content(of: operation.body).bytes()).map {
                        ChunkedUpload.content(of: $0, operation.request.fields)
                    }
                    if let content { write.length = Int64(content.count) }
                }
            } else if asked.readsContents {
                content = await stored(path, for: context)
            }
            guard !asked.readsContents || content.map(asked.selects) ?? false else { return nil }
            return asked.response(for: path, write, isCollection: false, etag: write.tag, content: asked.readsContents ? content : nil)
        case .server(let origin, let cause):
            if let response = base.response(at: origin) { return base.element(response, at: path) }
            if let element = await listedElement(of: origin, at: path, among: &elements, for: context) { return element }
            return cause.map { asked.response(for: path, $0, isCollection: context.request.path.hasSuffix("/"), etag: nil) }
        }
    }

    /// Returns the element of a file in a stored listing of its path, or else of the collection above, for another path.
    private func listedElement(
        of origin: FilePath, at path: FilePath, among elements: inout ShownElements, for context: RequestContext
    ) async -> [UInt8]? {
        for target in origin.targets + (origin.parent ?? origin).targets {
            if elements.origins[target] == nil {
                guard elements.origins.count < Self.originLimit else {
                    elements.isClear = false
                    return nil
                }
                elements.origins[target] = .some(await storedListing(of: target, for: context)?.document)
            }
            guard let known = elements.origins[target], let document = known else { continue }
            return document.response(at: origin).map { document.exported($0, at: path) }
        }
        return nil
    }

    /// The most places whose stored listings are searched for one answer.
    private static let originLimit = 256

    /// Returns the stored content of a file; nil without one.
    private func stored(_ path: FilePath, for context: RequestContext) async -> [UInt8]? {
        let readable = StoragePartition.readable(by: context.identity.partition)
        let url = context.request.origin.url + path.target
        guard let copy = try? await ownWrites.cache.copies(ofPath: url, in: readable, limit: 1).first, copy.response.head.status == 200
        else { return nil }
        return try? await ownWrites.reads.lookup.content(of: copy, limit: Int.mib(1))
    }

    // MARK: - Files that a multiget names (RFC 4791 §7.9, RFC 6352 §8.7)

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
