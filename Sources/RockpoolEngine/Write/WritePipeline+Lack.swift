// What a write to files needs and is not there, as its client knows (docs/outbox.md#files-and-collections).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension WritePipeline {
    /// Finds writes to files that wait in vain, because what they need is not there.
    struct Lack: Sendable {
        let files: FileOverlay
        let cache: CacheStore
        let now: Timestamp

        /// Returns the refusal of a MOVE or a COPY without a source (404), and of a MKCOL without a parent (409, RFC 4918 §9.3.1); nil if
        /// what the write needs may be there.
        func problem(of operation: QueuedWriteDraft, context: RequestContext) async -> Problem? {
            guard operation.collection == nil, let write = FileWrite(context.request), let upstream = context.plan.upstream?.name else {
                return nil
            }
            let principal = context.identity.principal
            if files.lacksSource(of: write, upstream: upstream, principal: principal, now: now) {
                return Problem(.notFound, detail: "\(write.path.target) is not there")
            }
            guard let parent = write.path.parent, let gap = files.gap(above: write, upstream: upstream, principal: principal, now: now),
                await !isStored(from: parent, to: gap, for: context)
            else { return nil }
            return Problem(.conflict, detail: "the collection \(parent.target) is not there; make it first")
        }

        /// True if the cache shows that there was something at a path, or at a collection above it up to `top`.
        private func isStored(from path: FilePath, to top: FilePath, for context: RequestContext) async -> Bool {
            let readable = StoragePartition.readable(by: context.identity.partition)
            var path: FilePath? = path
            while let place = path, top.contains(place) {
                for url in [place.target, place.target + "/"].map({ context.request.origin.url + $0 }) {
                    let copies = (try? await cache.copies(ofPath: url, in: readable, limit: 4)) ?? []
                    if copies.contains(where: { (200...299).contains($0.response.head.status) }) { return true }
                }
                path = place.parent
            }
            return false
        }
    }
}
