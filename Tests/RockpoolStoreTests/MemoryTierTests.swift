// Other content of the memory tier besides entries: keys without an entry, and hot replies; neither outlives its source
// (docs/architecture.md#parts).
import HTTPTypes
import NIOCore
import RockpoolCore
import Synchronization
import Testing

@testable import RockpoolStore

struct MemoryTierTests {
    private let key = CacheKey(method: "GET", origin: OriginAddress(scheme: .http, host: "h"), target: "/a")
    private let sibling = CacheKey(method: "GET", origin: OriginAddress(scheme: .http, host: "h"), target: "/a", identity: "anonymous")
    private let other = CacheKey(method: "GET", origin: OriginAddress(scheme: .http, host: "h"), target: "/b")
    private let now = Timestamp(seconds: 100)

    private func entry(_ id: Int64 = 1) -> CacheEntry {
        let head = ResponseHead(status: 200, fields: [.eTag: "\"one\"", .lastModified: "Thu, 01 Jan 1970 00:00:00 GMT"])
        let response = StoredResponse(head: head, requestTime: now, responseTime: now)
        return CacheEntry(
            id: id, key: key, response: response, storedAt: now, isPinned: false, bodyHash: [], bodyIsInFile: false)
    }

    /// - Parameter fields: lines of the head, each with its end.
    private func arrival(_ fields: String = "", method: String = "GET", credential: CredentialDigest? = nil) throws -> PlainArrival {
        let request = Array("\(method) /a HTTP/1.1\r\nHost: h\r\n\(fields)\r\n".utf8)
        let plain = FastPathRequest(request.span, limits: ClientLimits())
        return PlainArrival(try #require(plain), in: ByteBuffer(bytes: request), listener: "l:1", credential: credential)
    }

    private func reply(to arrival: PlainArrival) -> FastPathReply {
        let request = RequestHead(method: .get, origin: OriginAddress(scheme: .http, host: "h"), target: "/a")
        let basis = ReuseBasis(candidates: [entry()], request: request, rules: ReuseContext(), upstream: nil)
        return FastPathReply(entry(), body: ByteBuffer(string: "pearl"), basis: basis, for: arrival, selecting: [])
    }

    private func message(_ head: String, body: ByteBuffer?, epoch: UInt64 = 0) -> HotMessage {
        HotMessage(
            head: ByteBuffer(string: head), body: body, isStale: false, validFrom: now,
            validUntil: now + .milliseconds(10), epoch: epoch)
    }

    /// Returns a tier that holds one entry with its body and a hot reply.
    private func warm(limit: ByteCount = .mb(1)) throws -> (tier: MemoryTier, reply: FastPathReply) {
        let tier = MemoryTier(limit: limit)
        let entry = entry()
        tier.keep([entry], of: key, epoch: tier.epoch(of: key))
        tier.keep(ByteBuffer(string: "pearl"), of: entry)
        let reply = reply(to: try arrival())
        tier.keep(reply, for: HotReader(try arrival()), sibling: sibling, credential: nil, since: tier.moment)
        return (tier, reply)
    }

    /// Two lookups: what the second finds is void once the count of changes has moved.
    @Test func aChangeIsCounted() throws {
        let (tier, reply) = try warm()
        tier.keep(message("head ", body: reply.body), as: .whole, of: reply)
        for (change, isCounted) in [
            ({ _ = tier.entries(of: self.key) }, false), ({ tier.remove([self.key.text]) }, true), ({ tier.forgetHot() }, true),
            ({ tier.forgetHot(ofCredential: "x") }, true),
            ({ tier.keep([self.entry()], of: self.key, epoch: tier.epoch(of: self.key)) }, true),
        ] as [(() -> Void, Bool)] {
            tier.keep([entry()], of: key, epoch: tier.epoch(of: key))
            let before = tier.changes.load(ordering: .acquiring)
            change()
            #expect((tier.changes.load(ordering: .acquiring) != before) == isCounted)
        }
    }

    private func isHot(_ tier: MemoryTier) throws -> Bool { try tier.hot(arrival(), now: now, epoch: 0) != nil }

    @Test func aMessageServesWhileItIsValid() throws {
        let (tier, reply) = try warm()
        tier.keep(message("head ", body: reply.body), as: .whole, of: reply)
        for (offset, isMessage) in [(-1, false), (0, true), (9, true), (10, false)] {
            switch try tier.hot(arrival(), now: now + .milliseconds(Int64(offset)), epoch: 0) {
            case .message(let found, _, _, _, _): #expect(isMessage && String(buffer: found.bytes) == "head pearl", "\(offset)")
            case .undated: #expect(!isMessage, "\(offset)")
            case nil: Issue.record("the reply is not hot at \(offset)")
            }
        }
        guard case .undated = try tier.hot(arrival(), now: now, epoch: 1) else {
            Issue.record("a message serves after a change of an upstream's state")
            return
        }
    }

    @Test func eachFormHasItsMessage() throws {
        let (tier, reply) = try warm()
        tier.keep(message("whole ", body: reply.body), as: .whole, of: reply)
        tier.keep(message("304", body: nil), as: .notModified, of: reply)
        tier.keep(message("206 ", body: ByteBuffer(string: "pe")), as: .part(Array("bytes=0-1".utf8)), of: reply)
        func sent(_ fields: String) throws -> String? {
            switch try tier.hot(arrival(fields), now: now, epoch: 0) {
            case .message(let message, _, _, _, _): String(buffer: message.bytes)
            case .undated(_, let form, _): "\(form)"
            case nil: nil
            }
        }
        #expect(try sent("") == "whole pearl")
        #expect(try sent("If-None-Match: \"one\"\r\n") == "304")
        #expect(try sent("If-None-Match: \"one\"\r\nIf-Modified-Since: x\r\n") == "304", "the tag decides")
        #expect(try sent("If-None-Match: \"two\"\r\n") == nil)
        #expect(try sent("If-None-Match: \"two\", \"one\"\r\n") == nil, "the full path reads lists")
        #expect(try sent("If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n") == "304")
        #expect(try sent("If-Modified-Since: Thu, 01 Jan 1970 00:00:01 GMT\r\n") == nil)
        #expect(try sent("Range: bytes=0-1\r\n") == "206 pe")
        #expect(try sent("Range: bytes=1-2\r\n") == "\(FastPathReply.Form.part(Array("bytes=1-2".utf8)))")
        guard case .message(let head, _, _, _, _) = try tier.hot(arrival(method: "HEAD"), now: now, epoch: 0) else {
            Issue.record("no message for HEAD")
            return
        }
        #expect(head.headLength == 6)
    }

    @Test func aReplyBelongsToItsCredential() throws {
        let (mine, other) = (CredentialDigest(of: [1]), CredentialDigest(of: [2]))
        let (tier, _) = try warm()
        tier.keep(
            reply(to: try arrival(credential: mine)), for: HotReader(try arrival(credential: mine)), sibling: sibling, credential: "mine",
            since: tier.moment)
        func isHot(_ credential: CredentialDigest?) throws -> Bool {
            try tier.hot(arrival(credential: credential), now: now, epoch: 0) != nil
        }
        #expect(try isHot(mine) && isHot(nil) && !isHot(other))
        tier.forgetHot(ofCredential: "another")
        #expect(try isHot(mine))
        tier.forgetHot(ofCredential: "mine")
        #expect(try !isHot(mine) && isHot(nil))
    }

    /// A copy that all may read is serialised once, however many clients there are.
    @Test func manyClientsShareAReply() throws {
        let (tier, first) = try warm(limit: .mb(16))
        tier.keep(message("head ", body: first.body), as: .whole, of: first)
        try keep(0..<1000, in: tier)
        for number in 0..<1000 {
            guard case .message(_, let reply, _, let reader, _) = try tier.hot(arrival(of: number), now: now, epoch: 0) else {
                Issue.record("the reply is not hot for \(number)")
                return
            }
            #expect(reply === first && reader.principal == "\(number)")
        }
        tier.forgetHot(ofCredential: "7")
        #expect(try tier.hot(arrival(of: 7), now: now, epoch: 0) == nil)
        #expect(try isHot(tier) && tier.hot(arrival(of: 8), now: now, epoch: 0) != nil)
        tier.remove([key.text])
        #expect(tier.bytes == 0)
    }

    @Test func theClientsOfAReplyTakeABoundedPart() throws {
        let (tier, _) = try warm()
        try keep(0..<1000, in: tier)
        let hot = try (0..<1000).filter { try tier.hot(arrival(of: $0), now: now, epoch: 0) != nil }
        #expect(hot.count > 10 && hot.count < 300 && hot.last == 999 && tier.bytes < 200_000)
        tier.remove([key.text])
        #expect(tier.bytes == 0)
    }

    private func arrival(of number: Int) throws -> PlainArrival { try arrival(credential: CredentialDigest(of: Array("\(number)".utf8))) }

    private func keep(_ numbers: Range<Int>, in tier: MemoryTier) throws {
        for number in numbers {
            let arrival = try arrival(of: number)
            tier.keep(
                reply(to: arrival), for: HotReader(arrival, principal: "\(number)"), sibling: sibling, credential: "\(number)",
                since: tier.moment)
        }
    }

    @Test func aValidatedEntryIsReplacedInMemory() throws {
        let (tier, reply) = try warm()
        let earlier = entry()
        var response = earlier.response
        response.head.fields[.eTag] = "\"two\""
        let (moment, epoch) = (tier.moment, tier.epoch(of: key))
        #expect(tier.replace(earlier, by: response, epoch: epoch))
        #expect(tier.entries(of: key)?.first?.response.head.fields[.eTag] == "\"two\"" && tier.body(of: earlier) != nil)
        #expect(try !isHot(tier), "the reply was made of the earlier response")
        tier.keep(reply, for: HotReader(try arrival()), sibling: sibling, credential: nil, since: moment)
        #expect(try !isHot(tier))
        #expect(!tier.replace(earlier, by: response, epoch: epoch), "it was changed meanwhile")
        #expect(!tier.replace(entry(2), by: response, epoch: tier.epoch(of: key)))
        response.requestFields = [.acceptLanguage: "de"]
        #expect(!tier.replace(earlier, by: response, epoch: tier.epoch(of: key)), "it became another variant")
        tier.remove([key.text])
        #expect(tier.bytes == 0 && !tier.replace(earlier, by: response, epoch: tier.epoch(of: key)))
    }

    /// The validated one is the last one.
    @Test func aReplacedEntryComesFirst() throws {
        let tier = MemoryTier(limit: .mb(1))
        let (first, second) = (entry(2), entry(1))
        tier.keep([first, second], of: key, epoch: tier.epoch(of: key))
        var response = second.response
        response.responseTime = now + .seconds(1)
        #expect(tier.replace(second, by: response, epoch: tier.epoch(of: key)))
        #expect(tier.entries(of: key)?.map(\.id) == [1, 2])
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
        tier.keep(reply, for: HotReader(try arrival()), sibling: sibling, credential: nil, since: moment)
        #expect(try !isHot(tier))
        tier.keep(reply, for: HotReader(try arrival()), sibling: sibling, credential: nil, since: tier.moment)
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

extension MemoryTier {
    fileprivate func hot(_ arrival: PlainArrival, now: Timestamp, epoch: UInt64) -> HotFind? {
        hot(arrival, hash: arrival.hash, now: now, epoch: epoch)
    }
}
