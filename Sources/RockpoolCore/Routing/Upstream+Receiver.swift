// The receivers of Rockpool's own messages, as upstreams of the outbox (docs/outbox.md#messages).

extension Upstream {
    /// Messages are sent again for about a day.
    private static let messageAttempts = 30

    /// Returns the receivers that the configuration names, one for each kind and origin.
    static func receivers(of configuration: Configuration) -> [Upstream] {
        let hooks = configuration.notify.compactMap(\.webhook).compactMap { try? RequestHead(url: $0.url).origin }
        let offices = [configuration.fleet.report].compactMap { $0.flatMap { try? RequestHead(url: $0.url).origin } }
        let all =
            hooks.map { (ReceiverKind.webhook, $0) } + configuration.callbacks.origins.map { (ReceiverKind.callback, $0) }
            + offices.map { (ReceiverKind.report, $0) }
        var names: Set<String> = []
        return all.compactMap { kind, origin in
            let receiver = Upstream(receiving: kind, at: origin, like: configuration.upstreams.first { $0.origin == origin })
            return names.insert(receiver.name).inserted ? receiver : nil
        }
    }

    /// A receiver. Its messages have an id of their own, so a lost answer is no reason not to send one again.
    /// - Parameter declared: the upstream at the same origin, whose TLS settings and parent proxy apply.
    private init(receiving kind: ReceiverKind, at origin: OriginAddress, like declared: Upstream?) {
        self.init(
            name: kind.upstreamName(of: origin), origin: origin,
            queue: QueueSettings(uncertain: .retry, maxAttempts: Self.messageAttempts),
            idempotency: IdempotencySettings(header: "webhook-id", format: .raw, honoured: .yes, ttl: .forever))
        receiver = kind
        if let declared { (tls, parent, timeouts) = (declared.tls, declared.parent, declared.timeouts) }
    }
}
