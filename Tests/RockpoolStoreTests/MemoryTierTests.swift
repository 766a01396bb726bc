// Other content of the memory tier besides entries: keys without an entry, and hot replies; neither outlives its source
// (docs/architecture.md#parts).
import HTTPTypes
import NIOCore
import RockpoolCore
import Testing

@testable import RockpoolStore

struct MemoryTierTests {
    private let key = CacheKey(method: "GET", origin: OriginAddress(scheme: .http, host: "h"), target: "/a")
    private let sibling = CacheKey(method: "GET", origin: OriginAddress(scheme: .http, host: "h"), target: "/a", identity: "anonymous")
    private let other = CacheKey(method: "GET", origin: OriginAddress(scheme: .http, host: "h"), target: "/b")
    private let now = Timestamp(seconds: 100)
    private let request = Array("GET /a HTTP/1.1\r\nHost: h\r\n\r\n".utf8)

    private func entry(_ id: Int64 = 1) -> CacheEntry {
        let response = StoredResponse(head: ResponseHead(status: 200), requestTime: now, responseTime: now)
        return CacheEntry(
            id: id, key: key, response: response, storedAt: now, isPinned: false, bodyHash: [], bodyIsInFile: false)
    }

    private func arrival() throws -> PlainArrival {
        let plain = FastPathRequest(request.span, limits: ClientLimits())
        return PlainArrival(try #require(plain), in: ByteBuffer(bytes: request), listener: "l:1")
    }

    /// Returns a tier that holds one entry with its body and a hot reply.
    private func warm(limit: ByteCount = .mb(1)) throws -> (tier: MemoryTier, reply: FastPathReply) {
        let tier = MemoryTier(limit: limit)
        let entry = entry()
        tier.keep([entry], of: key, epoch: tier.epoch(of: key))
        tier.keep(ByteBuffer(string: "pearl"), of: entry)
        let reply = FastPathReply(entry, body: ByteBuffer(string: "pearl"), for: try arrival(), selecting: [], identityField: nil)
        tier.keep(reply, sibling: sibling, since: tier.moment)
        return (tier, reply)
    }

    private func isHot(_ tier: MemoryTier) throws -> Bool { try tier.hot(arrival(), now: now) != nil }

    @Test func aMessageServesWhileItIsValid() throws {
        let (tier, reply) = try warm()
        let message = HotMessage(
            head: ByteBuffer(string: "head "), body: reply.body, validFrom: now, validUntil: now + .milliseconds(10))
        tier.keep(message, of: reply)
        for (offset, isMessage) in [(-1, false), (0, true), (9, true), (10, false)] {
            switch try tier.hot(arrival(), now: now + .milliseconds(Int64(offset))) {
            case .message(let found): #expect(isMessage && String(buffer: found.bytes) == "head pearl", "\(offset)")
            case .undated: #expect(!isMessage, "\(offset)")
            case nil: Issue.record("the reply is not hot at \(offset)")
            }
        }
    }

    @Test func whateverIsRemovedIsNotHot() throws {
        let (first, _) = try warm()
        first.remove([other.text])
        #expect(try isHot(first))
        first.remove([key.text])
        #expect(try !isHot(first) && first.bytes == 0)
        let (second, _) = try warm()
        second.remove([sibling.text])
        #expect(try !isHot(second), "the removed entry without credentials could have been selected")
        let (third, _) = try warm()
        let before = third.bytes
        third.forgetHot()
        #expect(try !isHot(third) && third.bytes < before && third.entries(of: key)?.count == 1)
    }

    @Test func aReplacedEntryTakesItsReplyAlong() throws {
        let (tier, _) = try warm()
        tier.keep([entry(1)], of: key, epoch: tier.epoch(of: key))
        #expect(try !isHot(tier))
    }

    @Test(arguments: ["key", "sibling", "all"])
    func aReplyMadeBeforeARemovalIsNotKept(what: String) throws {
        let (tier, reply) = try warm()
        let moment = tier.moment
        switch what {
        case "key": tier.remove([key.text])
        case "sibling": tier.remove([sibling.text])
        default: tier.forgetHot()
        }
        let entry = entry()
        tier.keep([entry], of: key, epoch: tier.epoch(of: key))
        tier.keep(ByteBuffer(string: "pearl"), of: entry)
        tier.keep(reply, sibling: sibling, since: moment)
        #expect(try !isHot(tier))
        tier.keep(reply, sibling: sibling, since: tier.moment)
        #expect(try isHot(tier))
    }

    @Test func hotRepliesCountAgainstTheLimitAndLeaveWithTheirEntry() throws {
        let (tier, _) = try warm(limit: ByteCount(40_000))
        for number in 0..<200 {
            let key = CacheKey(method: "GET", origin: OriginAddress(scheme: .http, host: "h"), target: "/\(number)")
            tier.keep([entry()], of: key, epoch: tier.epoch(of: key))
            #expect(tier.bytes <= 40_000)
        }
        #expect(try !isHot(tier) && tier.entries(of: key) == nil)
    }

    @Test func aKeyInVainIsRememberedUntilSomethingIsStored() {
        let tier = MemoryTier(limit: .mb(1))
        #expect(tier.entries(of: key) == nil)
        tier.keep([], of: key, epoch: tier.epoch(of: key))
        #expect(tier.entries(of: key)?.isEmpty == true)
        let epoch = tier.epoch(of: key)
        tier.remove([key.text])
        #expect(tier.entries(of: key) == nil)
        tier.keep([], of: key, epoch: epoch)
        #expect(tier.entries(of: key) == nil, "the lookup began before the key was removed")
    }

    @Test func keysInVainAreBounded() {
        let tier = MemoryTier(limit: ByteCount(40_960))
        let keys = (0..<30).map { CacheKey(method: "GET", origin: OriginAddress(scheme: .http, host: "h"), target: "/\($0)") }
        for key in keys { tier.keep([], of: key, epoch: tier.epoch(of: key)) }
        #expect(keys.count { tier.entries(of: $0) != nil } == 20 && tier.entries(of: keys[29]) != nil)
    }
}
