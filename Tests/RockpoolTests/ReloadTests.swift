// Settings that SIGHUP applies, and settings that require a restart.
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct ReloadTests {
    private func configuration(_ yaml: String) throws -> Configuration {
        try ConfigurationSources(file: nil, environment: ["HOME": "/home/me"]).load(yaml: yaml, named: "rockpool.yaml").configuration
    }

    @Test(
        arguments: [
            ("", "", []),
            ("", "categories: { assets: { ttl: 1h } }", []),
            ("", "cleanup: { interval: 1m }", []),
            ("", "proxy: { no_proxy: [a.test] }", []),
            ("", "upstreams: [{ name: a, origin: 'http://a.test' }]", []),
            (
                "upstreams: [{ name: a, origin: 'http://a.test' }]", "upstreams: [{ name: a, origin: 'http://b.test', policy: standard }]",
                []
            ),
            ("", "proxy: { listen: '127.0.0.1:1', timeouts: { head: 1s } }", ["proxy.listen"]),
            ("", "proxy: { limits: { connections: 5, exchanges: 7 } }", ["proxy.limits.exchanges"]),
            ("", "admin: { hosts: [x.test] }", ["admin.hosts"]),
            ("", "storage: { cache_limit: 1 GB, data_limit: 100 MB, min_free: 1 GB, pin_cap: 10%, principal_share: 40% }", []),
            ("", "storage: { limit: 2 GB }", []), ("", "storage: { memory_limit: 1 MB }", ["storage.memory_limit"]),
            ("", "categories: { assets: { share: 10%, ttl: 1h } }", ["categories.assets.share"]),
            ("", "upstreams: [{ name: a, origin: 'http://a.test', gateway: '127.0.0.1:2' }]", []),
            ("upstreams: [{ name: a, origin: 'http://a.test', gateway: '127.0.0.1:2' }]", "", []),
            (
                "upstreams: [{ name: a, origin: 'http://a.test', gateway: '127.0.0.1:2' }]",
                "upstreams: [{ name: a, origin: 'http://b.test', gateway: '127.0.0.1:2' }]", []
            ),
        ] as [(String, String, [String])])
    func onlyWhatWasTakenAtTheStartWaits(_ old: String, _ new: String, _ waiting: [String]) throws {
        try #expect(Reload(from: configuration(old), to: configuration(new)).waiting == waiting)
    }

    /// Serving reads the window from the configuration, the store gives it to each entry that it takes.
    @Test func aNewOfflineWindowIsTakenForServing() throws {
        let (old, new) = try (configuration(""), configuration("categories: { assets: { offline_window: 1h, weight: 3 } }"))
        let reload = Reload(from: old, to: new)
        #expect(reload.partly == ["categories.assets.offline_window"] && reload.waiting == ["categories.assets.weight"])
        #expect(reload.configuration.categories == new.categories)
        #expect(Reload(from: new, to: new).partly == [])
    }

    @Test func whatWaitsKeepsItsOldValueAndTheRestIsTaken() throws {
        let old = try configuration("upstreams: [{ name: a, origin: 'http://a.test', gateway: '127.0.0.1:2' }]")
        let new = try configuration(
            """
            proxy: { listen: '127.0.0.1:1' }
            storage: { data_limit: 1 GB, state_dir: /elsewhere }
            cleanup: { interval: 1m }
            upstreams: [{ name: a, origin: 'http://b.test', gateway: '127.0.0.1:3', policy: standard }]
            """)
        let taken = Reload(from: old, to: new).configuration
        #expect(taken.proxy == old.proxy && taken.cleanup == new.cleanup && taken.upstreams == new.upstreams)
        #expect(taken.storage.stateDir == old.storage.stateDir && taken.storage.dataLimit == .mb(1000))
    }
}
