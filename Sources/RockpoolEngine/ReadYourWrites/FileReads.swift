// Reads of files that their client has written, moved or deleted, and that the server does not have in this state yet
// (docs/outbox.md#files-and-collections).
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore

/// The files of one upstream, as one client sees them.
struct FileView: Sendable {
    let upstream: String
    let principal: String?
    let path: FilePath
}

/// Reads of files, their listings, and lists of buckets.
struct FileReads: Sendable {
    let ownWrites: ReadYourWrites

    /// The writes that the reads include.
    var overlay: FileOverlay { ownWrites.overlay.files }

    /// Answers a read that a write to files may concern; nil for any other read.
    func read(_ context: inout RequestContext) async -> Reply? {
        if let listing = await readListing(&context) {
            if listing.head.status == 404, let upstream = context.plan.upstream?.name {
                overlay.noteMissing(
                    FilePath(context.request.target), upstream: upstream, principal: context.identity.principal,
                    at: ownWrites.cache.moment())
            }
            return listing
        }
        if context.plan.route?.kind == .s3, context.request.target.contains("?") { return await readObjects(&context) }
        guard let view = view(of: context) else { return nil }
        return await readFile(in: view, for: &context)
    }

    /// Marks a reply from the store that lacks the effect of an open write of its client to undeclared paths: below the path, or to it with
    /// an effect that is not known.
    func marked(_ reply: Reply, for context: RequestContext) -> Reply {
        guard let upstream = context.plan.upstream?.name, context.plan.entity?.resource == nil, context.trace.verdict.isFromStore,
            overlay.lacksWrite(context.request, upstream: upstream, principal: context.identity.principal)
        else { return reply }
        return reply.dirty
    }
}

extension FileReads {
    /// Returns the view of a read of a file; nil when no write concerns the upstream's files.
    private func view(of context: RequestContext) -> FileView? {
        guard let upstream = context.plan.upstream, overlay.covers(upstream: upstream.name),
            context.plan.entity?.resource == nil, context.bodyDigest == nil,
            context.request.method == .get || context.request.method == .head, FileWrite(context.request.asPut) != nil
        else { return nil }
        let view = FileView(upstream: upstream.name, principal: context.identity.principal, path: FilePath(context.request.target))
        return overlay.folds(upstream: view.upstream, path: view.path) ? view : nil
    }

    /// Answers the read of a file with the client's own writes.
    func readFile(in view: FileView, for context: inout RequestContext) async -> Reply {
        let open = overlay.fold(upstream: view.upstream, principal: view.principal, deliveredSince: nil)
        let state = open.state(of: view.path)
        guard case .server(view.path, _) = state else { return await reply(state, in: view, orElse: nil, for: &context) }
        let reply = await ownWrites.reads.readServerState(&context)
        let isItsOwn = context.trace.verdict != .failed
        let includes = (isItsOwn ? context.trace.includes : nil) ?? .first
        let late = overlay.fold(upstream: view.upstream, principal: view.principal, deliveredSince: includes).state(of: view.path)
        if case .server(view.path, _) = late { return marked(reply, for: context) }
        return await self.reply(late, in: view, orElse: reply, for: &context)
    }

    /// - Parameter other: The reply to the read without writes; nil if it is not known.
    private func reply(
        _ state: FileFold.State, in view: FileView, orElse other: Reply?, for context: inout RequestContext
    ) async -> Reply {
        switch state {
        case .content(let write):
            guard let shown = await content(of: write, for: context) else { break }
            return overlay.isChanged(after: write, upstream: view.upstream) ? shown.dirty : shown
        case .collection(let write):
            var head = ResponseHead(status: 200)
            head.show(write)
            return Reply(head: head, body: context.request.method == .head ? .none(length: 0) : .bytes(ByteBuffer()), trace: context.trace)
        case .absent(let write):
            let detail = "\(context.original.path) was deleted or moved" + (write.isDelivered ? "" : "; its upstream does not know yet")
            var reply = Reply(Problem(.notFound, detail: detail), context.trace)
            if !write.isDelivered { reply.head.fields[.rockpoolState] = "pending-delete" }
            return reply
        case .server(let path, let cause):
            var inner = context.at(path.target)
            inner.exchange.request = inner.request.unvalidated
            var reply = await ownWrites.reads.readServerState(&inner)
            // What the path shows since the move is another file.
            let isBefore = inner.trace.includes.map { includes in cause.map { $0.ended.map { includes <= $0 } ?? true } ?? true } ?? false
            guard isBefore, inner.trace.verdict != .failed || other == nil else { break }
            // The upstream has carried out the move already, before its answer is known here.
            if reply.head.status == 404, inner.trace.verdict != .failed { break }
            context.trace = inner.trace
            if let cause, reply.head.status == 200 {
                let base = reply.head.fields[.eTag].flatMap { EntityTag($0) }
                reply.head.show(cause)
                reply.head.fields[.eTag] = cause.sequence > 0 ? LocalETag(sequence: cause.sequence, base: base).fieldValue : cause.etag
            }
            return context.conditionalByTag(reply)
        case .unclear: break
        }
        var reply: Reply
        if let other { reply = other } else { reply = await ownWrites.reads.readServerState(&context) }
        // What the server has is shown in place of a write whose result is not known.
        switch state {
        case .content(let write) where !write.isDelivered: if context.trace.verdict.isFromStore { reply = reply.dirty }
        case .unclear: reply = reply.dirty
        case .content, .collection, .absent, .server: break
        }
        return marked(reply, for: context)
    }

    /// Returns the head of the newest stored representation of a file, and its content if that is JSON; nil without one.
    private func known(for context: RequestContext) async -> (head: ResponseHead, content: [UInt8]?)? {
        let url = context.request.urlWithoutQuery
        let copies = try? await ownWrites.cache.copies(ofPath: url, in: StoragePartition.readable(by: context.identity.partition), limit: 8)
        guard let copy = copies?.first(where: { $0.key.url == url && $0.response.head.status == 200 }) else { return nil }
        guard MediaType.isJSON(copy.response.head.fields) else { return (copy.response.head, nil) }
        let content = try? await ownWrites.reads.lookup.content(of: copy, limit: OwnWriteEffects.representationLimit)
        return (copy.response.head, content)
    }

    /// Returns the content that a write in the outbox holds; nil if it holds none any more, or cannot be what the server will show.
    private func content(of write: FileWrite, for context: RequestContext) async -> Reply? {
        guard write.sequence > 0, let operation = try? await ownWrites.data.operations(sequences: [write.sequence]).first,
            let bytes = try? ownWrites.data.content(of: operation.body).bytes()
        else { return nil }
        let content = ChunkedUpload.content(of: bytes, operation.request.fields)
        let known = await known(for: context)
        guard WrittenContent(operation.request.fields, body: content).mayRepresent(known?.head, content: known?.content) else { return nil }
        var head = ResponseHead(status: 200, fields: operation.request.fields.ofWrittenContent)
        head.fields[.contentType] = head.fields[.contentType] ?? "application/octet-stream"
        head.fields[.eTag] = write.tag
        head.fields[.lastModified] = HTTPDate.format(write.at)
        head.fields[.acceptRanges] = "bytes"
        head.show(write)
        let whole = Reply(head: head, body: .bytes(ByteBuffer(bytes: content)), trace: context.trace)
        let reply = context.conditionalByTag(whole)
        guard reply.head.status == 200, context.request.method == .get else { return reply }
        switch RangeReply.decide(request: context.request, stored: head, bodyLength: Int64(content.count), boundary: Multipart.boundary()) {
        case .part(let part, let range):
            let bytes = ByteBuffer(bytes: content[Int(range.lowerBound)..<Int(range.upperBound)])
            return Reply(head: part, body: .bytes(bytes), trace: context.trace)
        case .unsatisfiable(let head): return Reply(head: head, body: .bytes(ByteBuffer()), trace: context.trace)
        case nil, .whole, .parts: return reply
        }
    }

    // MARK: - Lists of a bucket with the objects that their client has written (docs/outbox.md#s3)

    /// Answers a list of a bucket; nil for another request, and where no write concerns the upstream.
    func readObjects(_ context: inout RequestContext) async -> Reply? {
        guard let upstream = context.plan.upstream?.name, context.request.method == .get else { return nil }
        overlay.noteListing(at: upstream)
        guard overlay.covers(upstream: upstream) else { return nil }
        var inner = context
        inner.exchange.request = context.request.unvalidated
        // A coded body could not be changed.
        inner.exchange.request.fields[.acceptEncoding] = nil
        var reply = await ownWrites.reads.readServerState(&inner)
        context.trace = inner.trace
        guard context.trace.verdict != .failed, reply.head.status == 200, !reply.head.fields.contains(.contentEncoding),
            let bytes = await ownWrites.bytes(of: &reply), let list = ObjectListing(context.request, body: Array(bytes.readableBytesView))
        else { return context.conditional(marked(reply, for: context)) }
        let fold = overlay.fold(
            upstream: upstream, principal: context.identity.principal, deliveredSince: context.trace.includes ?? .first)
        let folded = list.folded(with: fold, etag: \.tag)
        if !folded.isClear { reply = reply.dirty }
        guard let body = folded.body else { return context.conditional(reply) }
        reply.head.fields = reply.head.fields.ofComputedBody
        if fold.writes.contains(where: { !$0.isDelivered }) {
            (reply.head.fields[.rockpoolState], reply.head.fields[.cacheControl]) = ("pending", "no-store")
        }
        reply.body = .bytes(ByteBuffer(bytes: body))
        return reply
    }
}

extension FileWrite {
    /// The tag under which the file is read back.
    var tag: String? { isDelivered ? etag : LocalETag(sequence: sequence).fieldValue }
}

extension ResponseHead {
    /// Shows that a write which the server does not have yet is included.
    mutating func show(_ write: FileWrite) {
        guard !write.isDelivered else { return }
        fields[.rockpoolState] = "pending"
        fields[.cacheControl] = "no-store"
    }
}

extension Reply {
    /// The reply, marked as older than a write of its client.
    var dirty: Reply {
        var reply = self
        reply.head.fields[.rockpoolDirty] = "1"
        return reply
    }
}

extension RequestHead {
    /// A write to the same target.
    var asPut: RequestHead { RequestHead(method: .put, origin: origin, target: target) }
}
