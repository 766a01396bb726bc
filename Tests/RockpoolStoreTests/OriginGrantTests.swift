// Permissions for pages of other origins: known at once, kept across starts, and bounded.
import GRDB
import RockpoolCore
import Testing

@testable import RockpoolStore

@Suite struct OriginGrantTests {
    let scratch: Scratch
    let time = ManualTime()

    init() throws { scratch = try Scratch() }

    private func name(_ page: String) -> OriginGrantName {
        OriginGrantName(upstream: OriginAddress(scheme: .https, host: "api.test"), page: page, scope: "/notes")
    }

    @Test func aPermissionIsKnownUntilItIsForgottenAlsoAfterAStart() async throws {
        var grant = CrossOriginGrant(.named)
        grant.methods = ["PUT"]
        var store = try openCache(scratch.cache, time)
        try await store.noteOriginGrant(grant, of: name("https://a.test"))
        #expect(store.originGrant(of: name("https://a.test")) == grant && store.originGrant(of: name("https://b.test")) == nil)
        await store.close()
        store = try openCache(scratch.cache, time)
        #expect(store.originGrant(of: name("https://a.test")) == grant)
        try await store.noteOriginGrant(nil, of: name("https://a.test"))
        #expect(store.originGrant(of: name("https://a.test")) == nil)
        #expect(try await store.database.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM origin_grant") } == 0)
        await store.close()
    }

    @Test func aPermissionTooLongIsAsGoodAsNone() async throws {
        let store = try openCache(scratch.cache, time)
        var grant = CrossOriginGrant(.named)
        grant.exposed = [String(repeating: "x", count: CacheStore.originGrantBytes)]
        try await store.noteOriginGrant(grant, of: name("https://a.test"))
        #expect(store.originGrant(of: name("https://a.test")) == nil)
        await store.close()
    }
}
