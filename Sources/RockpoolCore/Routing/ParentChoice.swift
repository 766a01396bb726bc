// The parent proxy of a request or a tunnel (docs/reference/configuration.md#via).

extension Configuration {
    /// The parent proxy for `origin`: its upstream's own, else that of the first rule that matches; nil for none.
    package func parent(for origin: OriginAddress, of upstream: Upstream?) -> ParentSettings? {
        if let own = upstream?.parent { return own }
        guard let rule = via.first(where: { $0.matches(origin) }), rule.parent.url != ParentRule.direct else { return nil }
        return rule.parent
    }
}
