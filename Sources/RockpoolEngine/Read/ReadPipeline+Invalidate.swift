// Invalidation of stored responses by writes (RFC 9111 §4.4).
import HTTPTypes
import Logging
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Invalidates stored responses after a write (RFC 9111 §4.4).
    func invalidate(after answer: ResponseHead, to request: RequestHead) async {
        let urls = Invalidation.targets(request: request, response: answer).flatMap { url in
            // Includes the URL under which equivalent queries are stored.
            guard let request = try? RequestHead(url: url) else { return [url] }
            let stored = key(of: request, active.routes.plan(for: request), in: .shared).url
            return stored == url ? [url] : [url, stored]
        }
        let groups = CacheGroups.invalidated(by: answer, to: request)
        do {
            if !urls.isEmpty { _ = try await cache.invalidate(urls: urls) }
            if !groups.isEmpty { _ = try await cache.invalidate(groups: groups, origin: request.origin) }
        } catch { logger.failed("cache invalidation failed", error) }
    }
}
