// An HTTP/2 client may split its Cookie field into crumbs; they are joined before forwarding (RFC 9113 §8.2.3).
import NIOHPACK
import Testing

@testable import RockpoolNetwork

@Suite struct CookieCrumbTests {
    @Test(arguments: [([], []), (["a=1"], ["a=1"]), (["a=1", "b=2", "c=3"], ["a=1; b=2; c=3"])] as [([String], [String])])
    func crumbsAreJoinedInTheirOrder(crumbs: [String], cookies: [String]) {
        var headers = HPACKHeaders([(":method", "GET"), ("accept", "*/*")] + crumbs.map { ("cookie", $0) })
        StreamGate.joinCookies(&headers)
        #expect(headers["cookie"] == cookies && headers["accept"] == ["*/*"])
    }
}
