// The list of field names: each is the field that its constant says.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct FieldNamesTests {
    /// An invalid name would stop the test; a name in place of another would be found twice.
    @Test(arguments: [
        (HTTPField.Name.hostField, "Host"),
        (HTTPField.Name.cdnLoop, "CDN-Loop"),
        (HTTPField.Name.idempotencyKey, "Idempotency-Key"),
        (HTTPField.Name.repeatabilityResult, "Repeatability-Result"),
        (HTTPField.Name.proxyConnection, "Proxy-Connection"),
        (HTTPField.Name.keepAlive, "Keep-Alive"),
        (HTTPField.Name.http2Settings, "HTTP2-Settings"),
        (HTTPField.Name.link, "Link"),
        (HTTPField.Name.cacheStatus, "Cache-Status"),
        (HTTPField.Name.prefer, "Prefer"),
        (HTTPField.Name.preferenceApplied, "Preference-Applied"),
        (HTTPField.Name.pragma, "Pragma"),
        (HTTPField.Name.secFetchSite, "Sec-Fetch-Site"),
        (HTTPField.Name.lastEventID, "Last-Event-ID"),
        (HTTPField.Name.referrerPolicy, "Referrer-Policy"),
        (HTTPField.Name.crossOriginOpenerPolicy, "Cross-Origin-Opener-Policy"),
        (HTTPField.Name.rockpoolOperation, "Rockpool-Operation"),
        (HTTPField.Name.rockpoolState, "Rockpool-State"),
        (HTTPField.Name.rockpoolPolicy, "Rockpool-Policy"), (HTTPField.Name.rockpoolPeer, "Rockpool-Peer"),
        (HTTPField.Name.rockpoolPriority, "Rockpool-Priority"),
        (HTTPField.Name.rockpoolExpires, "Rockpool-Expires"),
        (HTTPField.Name.rockpoolDependsOn, "Rockpool-Depends-On"),
        (HTTPField.Name.rockpoolGroup, "Rockpool-Group"),
        (HTTPField.Name.rockpoolNoMerge, "Rockpool-No-Merge"),
        (HTTPField.Name.rateLimit, "RateLimit"), (HTTPField.Name.rateLimitRemaining, "RateLimit-Remaining"),
        (HTTPField.Name.rateLimitReset, "RateLimit-Reset"), (HTTPField.Name.xRateLimitRemaining, "X-RateLimit-Remaining"),
        (HTTPField.Name.xRateLimitReset, "X-RateLimit-Reset"),
        (HTTPField.Name.rockpoolCallback, "Rockpool-Callback"), (HTTPField.Name.webhookID, "webhook-id"),
        (HTTPField.Name.webhookTimestamp, "webhook-timestamp"), (HTTPField.Name.webhookSignature, "webhook-signature"),
        (HTTPField.Name.rockpoolLocalID, "Rockpool-Local-Id"),
        (HTTPField.Name.rockpoolPending, "Rockpool-Pending"),
        (HTTPField.Name.rockpoolDirty, "Rockpool-Dirty"), (.rockpoolListed, "Rockpool-Listed"), (.rockpoolSync, "Rockpool-Sync"),
    ]) func eachNameIsItsOwnField(name: HTTPField.Name, text: String) {
        #expect(name.rawName == text && HTTPField.Name(text) == name)
    }

    @Test func digestsAreNamed() {
        #expect(HTTPField.Name.digests.map(\.rawName) == ["Content-MD5", "Content-Digest", "Repr-Digest", "Digest"])
    }
}
