// Keeps the clients of a gateway: replies name the gateway's address in place of the origin's (docs/guide/clients.md#gateways).
import HTTPTypes
import NIOCore
package import RockpoolCore
import RockpoolStore
import Synchronization

/// Translates between the clients of a gateway and the pipeline, which knows the origin only.
struct GatewayReplies: Sendable {
    let cache: CacheStore
    let active: ActiveConfiguration

    /// Prepares a request for `rewrite_bodies`: URLs of the gateway in its JSON become the origin's.
    func receive(_ exchange: inout Exchange) async {
        guard let gateway = exchange.gateway, let rewriting = rewriting(of: exchange, at: gateway) else { return }
        let fields = exchange.request.fields
        if rewriting == .jsonURLs {
            for name in [HTTPField.Name.range, .ifRange, .acceptEncoding] { exchange.request.fields[name] = nil }
        }
        guard let body = exchange.body, MediaType.isJSON(fields), !fields.contains(.contentEncoding) else { return }
        let limit: Int
        switch rewriting {
        case .jsonURLs: limit = GatewayAddress.bodyLimit
        case .links:
            limit = GatewayLinks.bodyLimit
            guard GatewayAddress.mayReplaceLinks(of: fields), SignedRequest(exchange.request)?.isOfOneRequest != true else { return }
        }
        guard exchange.bodyLength ?? 0 <= limit else { return }
        let (bytes, rest) = await body.beginning(upTo: limit)
        if let rest {
            exchange.body = BodyPipe(bytes, then: rest)
        } else {
            let whole = inward(Array(bytes.readableBytesView), by: gateway, rewriting).map { ByteBuffer(bytes: $0) } ?? bytes
            exchange.body = BodyPipe(whole: whole, trailers: body.trailers)
            if rewriting == .jsonURLs || exchange.bodyLength != nil { exchange.bodyLength = Int64(whole.readableBytes) }
        }
    }

    private func inward(_ json: [UInt8], by gateway: GatewayAddress, _ rewriting: BodyRewriting) -> [UInt8]? {
        switch rewriting {
        case .jsonURLs: gateway.inward(json: json)
        case .links: GatewayLinks.replaced(json, by: gateway, .inward)
        }
    }

    /// Translates the fields of a reply, and its JSON where the configuration says so.
    func complete(_ reply: inout Reply, to exchange: Exchange) async {
        guard let gateway = exchange.gateway else { return }
        reply.head.fields = gateway.translated(reply.head.fields)
        guard let rewriting = rewriting(of: exchange, at: gateway), (200...299).contains(reply.head.status), reply.head.status != 206,
            MediaType.isJSON(reply.head.fields)
        else { return }
        switch rewriting {
        case .links: await replaceLinks(in: &reply, by: gateway)
        case .jsonURLs: await replaceURLs(in: &reply, by: gateway)
        }
    }

    /// True if the clients of a gateway may get another body than the one that is stored.
    static func changes(_ head: ResponseHead, _ body: Span<UInt8>, of upstream: Upstream?, for gateway: GatewayAddress?) -> Bool {
        guard let gateway else { return false }
        return switch upstream?.gatewaySettings?.rewriting {
        case .jsonURLs: true
        case .links:
            GatewayAddress.mayReplaceLinks(of: head.fields)
                && (head.fields.contains(.contentEncoding) || gateway.isNamed(in: body, .outward))
        case nil: false
        }
    }

    private func replaceURLs(in reply: inout Reply, by gateway: GatewayAddress) async {
        guard !reply.head.fields.contains(.contentEncoding) else { return }
        // The length of the translated body is unknown.
        if case .none = reply.body { reply.body = .none(length: nil) }
        guard let bytes = await reply.body.collect(upTo: GatewayAddress.bodyLimit, from: cache),
            let translated = gateway.outward(json: Array(bytes.readableBytesView))
        else { return }
        reply.body = .bytes(ByteBuffer(bytes: translated))
        for name in HTTPField.Name.digests { reply.head.fields[name] = nil }
    }

    /// Replaces the values that are links. A body that names the origin nowhere stays as it is, also in its coding.
    private func replaceLinks(in reply: inout Reply, by gateway: GatewayAddress) async {
        // A status document names what it means.
        guard GatewayAddress.mayReplaceLinks(of: reply.head.fields), reply.head.fields[.location]?.contains(RequestTarget.ownPath) != true
        else { return }
        let isCoded = reply.head.fields.contains(.contentEncoding)
        switch reply.body {
        case .none: return reply.body = .none(length: nil)
        // A text that comes as it is made is passed on as it comes.
        case .stream(let source, nil) where !isCoded:
            reply.body = .stream(LinkedBody(source, links: GatewayLinks(gateway, .outward)), length: nil)
            // Later ones that name the origin nowhere may be relayed: a relay looks.
            reply.head.fields[.acceptRanges] = "none"
            return
        case .bytes, .file, .stream:
            guard let bytes = await reply.body.collect(upTo: GatewayLinks.bodyLimit, from: cache),
                let plain = isCoded ? bytes.decoded(of: reply.head, upTo: GatewayLinks.bodyLimit) : bytes,
                let translated = GatewayLinks.replaced(Array(plain.readableBytesView), by: gateway, .outward)
            else { return }
            reply.body = .bytes(ByteBuffer(bytes: translated))
            if isCoded { reply.head = reply.head.uncoded }
        }
        // A range of what was sent is no range of what is stored, and a relay passes on what it gets.
        reply.head.fields[.acceptRanges] = "none"
        (reply.passed, reply.passedWrite) = (nil, nil)
    }

    /// How bodies of an exchange are changed; nil if they are not. Documents of our own name what they mean.
    private func rewriting(of exchange: Exchange, at gateway: GatewayAddress) -> BodyRewriting? {
        guard !exchange.request.target.hasPrefix(RequestTarget.ownPath) else { return nil }
        return active.routes.upstream(for: gateway.origin, target: gateway.basePath)?.gatewaySettings?.rewriting
    }
}

/// A text of JSON whose links are replaced while it is passed on.
private final class LinkedBody: BodySource {
    private let source: any BodySource
    private let links: Mutex<GatewayLinks?>

    init(_ source: any BodySource, links: GatewayLinks) {
        self.source = source
        self.links = Mutex(links)
    }

    var trailers: HTTPFields { source.trailers }

    func next() async throws(TransferFailure) -> ByteBuffer? {
        while true {
            let chunk = try await source.next()
            let passed = links.withLock { links in
                guard let chunk else {
                    defer { links = nil }
                    return links?.finish()
                }
                return links?.pass(chunk.readableBytesView)
            }
            guard let passed, !passed.isEmpty || chunk != nil else { return nil }
            if !passed.isEmpty { return ByteBuffer(bytes: passed) }
        }
    }

    func abandon() { source.abandon() }
}

/// Signed requests that came to a gateway which names another host than they were signed for: the time of the last one to each upstream,
/// for `rockpool doctor` (docs/guide/programs.md#s3-aws-boto3-rclone).
package final class SignedArrivals: Sendable {
    private let times = Mutex<[String: Timestamp]>([:])

    /// The time of the last one; nil if none has come since the start.
    package func last(to upstream: String) -> Timestamp? { times.withLock { $0[upstream] } }

    /// Notes the request of an exchange at a gateway whose rewritten `Host` its signature covers.
    func note(_ exchange: Exchange, to upstream: Upstream?, at moment: Timestamp) {
        guard let upstream, exchange.gateway != nil, exchange.signer == nil, !upstream.preserveHost,
            let signed = SignedRequest(exchange.request), signed.coversHost
        else { return }
        times.withLock { $0[upstream.name] = moment }
    }
}
