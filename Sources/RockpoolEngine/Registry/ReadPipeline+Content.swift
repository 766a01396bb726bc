// Content that a registry keeps at another host: its answer is a redirect to a URL that is good for some minutes. The redirect is followed here, so
// that the content is fetched once whoever asks, and is there when the URL has ended.
import HTTPTypes
import NIOCore
import RockpoolCore

extension ReadPipeline {
    /// The most redirects that are followed.
    private static let mostRedirects = 4

    /// Returns the answer of the host that a redirect for content by its digest leads to; any other answer as it is. The credential stays with
    /// the registry. What a digest names is the same for all, whatever the answer says it varies by.
    func contentBehind(_ first: OriginReply, to head: RequestHead, for context: RequestContext) async throws(TransferFailure) -> OriginReply
    {
        guard context.plan.keeping == .contentInOwnPartition else { return first }
        var (reply, head) = (first, head)
        reply.head.fields[.vary] = nil
        guard head.method == .get else { return reply }
        for _ in 0..<Self.mostRedirects {
            guard let next = head.next(after: reply.head), mayFollow(to: next.origin, from: head.origin) else { return reply }
            reply.body.abandon()
            head = next
            let upstream = active.routes.upstream(for: next.origin, target: next.target)
            reply = try await upstreams.send(
                head, body: .none, upstream: upstream, allowsLoopback: upstream?.allowsLoopback == true,
                account: context.isBehind ? nil : context.exchange.account, forClient: !context.isBehind,
                loop: context.exchange.loop)
            reply.head.fields = HTTPFields(reply.head.fields.filter { $0.name != .setCookie && $0.name != .vary })
            reply.request = nil
        }
        return reply
    }

    /// True for an undeclared host at a port of the web, and for a declared origin. No redirect leads from encryption to none.
    private func mayFollow(to origin: OriginAddress, from former: OriginAddress) -> Bool {
        guard origin.scheme == .https || former.scheme == .http else { return false }
        return active.routes.upstream(for: origin) != nil || origin.port == (origin.scheme == .https ? 443 : 80)
    }
}

extension RequestHead {
    /// The request that follows a redirect, without credentials where it leads to another origin; nil for no redirect.
    fileprivate func next(after answer: ResponseHead) -> RequestHead? {
        guard [301, 302, 303, 307, 308].contains(answer.status), let location = answer.fields[.location] else { return nil }
        var next = self
        if let url = URIReference.resolve(location, origin: origin, target: target) {
            next.target = String(url.dropFirst(origin.url.count))
        } else if case .absolute(let origin, let path)? = try? RequestTarget.parse(location, method: "GET") {
            next = RequestHead(method: method, origin: origin, target: path, fields: SecretFields.removed(from: fields))
            next.fields[.referer] = nil
        } else {
            return nil
        }
        return next
    }
}
