// Tunnels that are decrypted: only those configured by the owner.
import RockpoolCore
import Testing

@Suite struct InterceptionTests {
    @Test(arguments: [
        ("api.test", "api.test", 443, true), ("api.test", "api.test", 8443, true), ("api.test", "sub.api.test", 443, false),
        ("API.test", "api.test", 443, true), ("api.test:8443", "api.test", 8443, true), ("api.test:8443", "api.test", 443, false),
        ("*.api.test", "a.api.test", 443, true), ("*.api.test", "a.b.api.test", 443, true), ("*.api.test", "api.test", 443, false),
        ("*.api.test", "evilapi.test", 443, false), ("*.api.test:444", "a.api.test", 443, false), ("[::1]", "::1", 443, true),
        ("[::1]:444", "::1", 444, true), ("127.0.0.1", "127.0.0.1", 1, true),
    ])
    func anEntryNamesHosts(entry: String, host: String, port: Int, matches: Bool) throws {
        #expect(try #require(HostPattern(entry)).matches(host: host, port: port) == matches)
    }

    @Test(arguments: ["", "*", "*.", "a b", "a*.test", "api.test:0", "api.test:x", "http://api.test", "api.test/", "*.127.0.0.1", "::1"])
    func whatIsNoEntryIsRefused(entry: String) { #expect(HostPattern(entry) == nil) }

    @Test(arguments: [
        ("on.test", 443, Interception.declared), ("off.test", 443, .declaredOpaque), ("listed.test", 443, .listed),
        ("both.test", 443, .declared), ("on.test", 8443, .notNamed), ("plain.test", 80, .notNamed), ("other.test", 443, .notNamed),
    ])
    func nothingIsDecryptedUnlessNamed(host: String, port: Int, expected: Interception) {
        var configuration = Configuration()
        let origins = [("on.test", true), ("off.test", false), ("both.test", false)]
        configuration.upstreams = origins.map {
            Upstream(name: $0.0, origin: OriginAddress(scheme: .https, host: $0.0), intercept: $0.1)
        }
        // Of several upstreams at one origin any one decides.
        configuration.upstreams.append(Upstream(name: "second", origin: OriginAddress(scheme: .https, host: "on.test")))
        configuration.upstreams.append(Upstream(name: "plain", origin: OriginAddress(scheme: .http, host: "plain.test"), intercept: true))
        configuration.proxy.intercept = ["listed.test", "both.test"]
        #expect(configuration.interception(host: host, port: port) == expected)
        configuration.defaults.intercept = true
        let everyHost = expected == .notNamed ? Interception.everyHost : expected
        #expect(configuration.interception(host: host, port: port) == everyHost && everyHost.isDecrypted == (host != "off.test"))
    }

    @Test func nothingIsDecryptedByDefault() {
        #expect(!Configuration().interceptsAnything)
        #expect(Configuration().interception(host: "api.test", port: 443) == .notNamed)
    }

    // MARK: clients that do not trust the authority

    private let now = Timestamp(seconds: 1)

    @Test func aRefusalIsNewsOnce() {
        var clients = UntrustingClients()
        let news = [
            clients.note(host: "a", client: "1", at: now, alert: "unknown_ca").isNews,
            clients.note(host: "a", client: "1", at: now, alert: "closed").isNews,
        ]
        #expect(news == [true, false])
        #expect(clients.list == [UntrustingClient(host: "a", client: "1", at: now, alert: "closed", count: 2)])
        clients.forget(host: "a", client: "2")
        #expect(clients.list.count == 1)
        clients.forget(host: "a", client: "1")
        #expect(clients.list.isEmpty)
    }

    @Test(arguments: [
        ("unknown_ca", true, true), ("bad_certificate", true, true), ("certificate_unknown", true, true), ("unknown_ca", false, false),
        ("closed", true, false), ("certificate_expired", true, false),
    ])
    func whoSaysWhyIsLeftAlone(alert: String, mayBypass: Bool, isBypassed: Bool) {
        var clients = UntrustingClients()
        #expect(clients.note(host: "a", client: "1", at: now, alert: alert, mayBypass: mayBypass).isBypassed == isBypassed)
        #expect(clients.isBypassed(host: "a", client: "1", at: now) == isBypassed)
        #expect(!clients.isBypassed(host: "b", client: "1", at: now) && !clients.isBypassed(host: "a", client: "2", at: now))
    }

    @Test func aConnectionThatJustClosesTakesNoBypassBack() {
        var clients = UntrustingClients()
        _ = clients.note(host: "a", client: "1", at: now, alert: "unknown_ca", mayBypass: true)
        #expect(clients.note(host: "a", client: "1", at: now, alert: "closed", mayBypass: true) == (false, true))
        let over = now + UntrustingClients.bypass
        #expect(clients.note(host: "a", client: "1", at: over, alert: "closed", mayBypass: true) == (false, false))
    }

    @Test func aBypassEndsByTimeByTrustAndByNumber() {
        var clients = UntrustingClients()
        _ = clients.note(host: "a", client: "1", at: now, alert: "unknown_ca", mayBypass: true)
        let end = now + UntrustingClients.bypass
        let last = end - .seconds(1)
        #expect(clients.isBypassed(host: "a", client: "1", at: last) && !clients.isBypassed(host: "a", client: "1", at: end))
        #expect(!clients.isBypassed(host: "a", client: "1", at: now - .seconds(1)), "the clock was set back")
        var trusting = clients
        trusting.forget(host: "a", client: "1")
        #expect(!trusting.isBypassed(host: "a", client: "1", at: now))
        for number in 0..<UntrustingClients.limit {
            #expect(clients.isBypassed(host: "a", client: "1", at: now))
            _ = clients.note(host: "\(number)", client: "1", at: now, alert: "unknown_ca", mayBypass: true)
        }
        #expect(!clients.isBypassed(host: "a", client: "1", at: now))
    }

    /// A declared upstream is always decrypted: a bypass for an untrusting client would lose writes.
    @Test(arguments: Interception.allCases) func onlyListsYieldToClients(interception: Interception) {
        #expect(interception.yields == [.listed, .everyHost].contains(interception))
    }

    @Test func onlyTheLatestAreKept() {
        var clients = UntrustingClients()
        for number in 0...UntrustingClients.limit { _ = clients.note(host: "\(number)", client: "c", at: now, alert: "closed") }
        #expect(clients.list.count == UntrustingClients.limit)
        #expect(clients.list.first?.host == "\(UntrustingClients.limit)" && clients.list.last?.host == "1")
    }
}
