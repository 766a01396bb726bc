// What a write to files needs and is not there, as its client knows (docs/outbox.md#files-and-collections).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension WritePipeline {
    /// Finds writes to files that wait in vain, because what they need is not there.
    struct Lack: Sendable {
        let files: FileOverlay
        let cache: CacheStore
        let lookup: EntryLookup
        let now: Timestamp

        /// Returns the refusal of a MOVE or a COPY of a tree into itself (403, RFC 4918 §9.8.5) or without a source (404), and of a MKCOL without
        /// a parent (409, RFC 4918 §9.3.1); nil if what the write needs may be there.
        func problem(of operation: QueuedWriteDraft, context: RequestContext) async -> Problem? {
            guard operation.collection == nil, let write = FileWrite(context.request), let upstream = context.plan.upstream?.name else {
                return nil
            }
            if FileWrite.isIntoItself(context.request) {
                return Problem(.forbiddenTarget, detail: "\(write.path.target) cannot be moved or copied to its own place or into itself")
            }
            let principal = context.identity.principal
            if files.lacksSource(of: write, upstream: upstream, principal: principal, now: now) {
                return Problem(.notFound, detail: "\(write.path.target) is not there")
            }
            guard write.effect == .collection, let parent = write.path.parent else { return nil }
            let isMissing =
                if let gap = files.gap(above: write, upstream: upstream, principal: principal, now: now) {
                    await !isStored(from: parent, to: gap, for: context)
                } else {
                    await isUnlisted(parent, upstream: upstream, for: context)
                }
            return isMissing ? Problem(.conflict, detail: "the collection \(parent.target) is not there; make it first") : nil
        }

        /// True if the newest stored listing of a collection above a path lacks the member that leads to the path, and the client has made
        /// nothing there since.
        private func isUnlisted(_ path: FilePath, upstream: String, for context: RequestContext) async -> Bool {
            var member = path
            while let collection = member.parent {
                if let listing = await listing(of: collection, upstream: upstream, for: context) {
                    guard !listing.members.contains(member) else { return false }
                    let since = files.fold(
                        upstream: upstream, principal: context.identity.principal, deliveredSince: listing.entry.response.asked)
                    return [member, path].allSatisfy { since.state(of: $0) == .server($0, by: nil) }
                }
                member = collection
            }
            return false
        }

        /// The newest stored PROPFIND of a collection that shows members; or the newest one, if it is known that clients list this collection:
        /// otherwise it may be about the collection alone (`Depth: 0`).
        private func listing(
            of collection: FilePath, upstream: String, for context: RequestContext
        ) async -> (entry: CacheEntry, members: [FilePath])? {
            var empty: CacheEntry?
            let readable = StoragePartition.readable(by: context.identity.partition)
            for target in collection.targets {
                let copies = (try? await cache.copies(ofPath: context.request.origin.url + target, in: readable, limit: 8)) ?? []
                for copy in copies where copy.key.method == "PROPFIND" && copy.response.head.status == 207 {
                    guard let bytes = try? await lookup.content(of: copy, limit: Int.mib(1)), let document = Multistatus(bytes) else {
                        continue
                    }
                    let members = document.responses.map(\.path).filter { $0.parent == collection }
                    if !members.isEmpty { return (copy, members) }
                    empty = empty ?? copy
                }
            }
            return files.isListed(collection, at: upstream) ? empty.map { ($0, []) } : nil
        }

        /// True if the cache shows that there was something at a path, or at a collection above it up to `top`.
        private func isStored(from path: FilePath, to top: FilePath, for context: RequestContext) async -> Bool {
            let readable = StoragePartition.readable(by: context.identity.partition)
            var path: FilePath? = path
            while let place = path, top.contains(place) {
                for url in place.targets.map({ context.request.origin.url + $0 }) {
                    let copies = (try? await cache.copies(ofPath: url, in: readable, limit: 4)) ?? []
                    if copies.contains(where: { (200...299).contains($0.response.head.status) }) { return true }
                }
                path = place.parent
            }
            return false
        }
    }
}
