// Sites and their collector: names, records, silence, and the check of a report's signature (docs/fleet.md#sites).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct SiteTests {
    private static let start = Timestamp(milliseconds: 1_800_000_000_000)
    private static let code: @Sendable ([UInt8], [UInt8]) -> [UInt8] = { message, key in key + [0] + message }

    @Test func aNameLeavesNoDirectory() {
        for good in ["shop-1", "A.b_c", String(repeating: "x", count: 64)] { #expect(SiteName.isValid(good), "\(good)") }
        for bad in ["", ".", "..", ".x", "a/b", "../x", "a b", "ä", "a\0", String(repeating: "x", count: 65)] {
            #expect(!SiteName.isValid(bad), "\(bad)")
        }
    }

    @Test func aRecordReadsBack() throws {
        let record = SiteRecord(
            site: "shop-1", receivedAt: Self.start, sentAt: Self.start, id: "m1", report: ["site": "shop-1", "pending": 2])
        #expect(SiteRecord(record.document) == record)
        #expect(record.yields(toSentAt: Self.start) && !record.yields(toSentAt: Self.start - .seconds(1)))
        for member in ["site", "id", "receivedAt", "sentAt"] {
            var document = record.document
            document[member] = "../x"
            #expect(SiteRecord(document) == nil || member == "id", "\(member)")
        }
        #expect(SiteRecord(["site": "shop-1"]) == nil && SiteRecord([]) == nil)
    }

    @Test(arguments: [
        (#"{"site":"a","pending":2,"conflicts":0,"failed":0,"oldestPendingSeconds":1.5,"version":"1"}"#, nil), (#"{"site":"a"}"#, nil),
        (#"{"oldestPendingSeconds":null,"upstreams":[],"storage":{"dataBytes":1,"trouble":null},"new":[1]}"#, nil),
        (#"{"pending":1e999}"#, "pending"), (#"{"pending":-1}"#, "pending"), (#"{"pending":"2"}"#, "pending"),
        (#"{"failed":1.5}"#, "failed"),
        (#"{"conflicts":9007199254740992}"#, "conflicts"), (#"{"oldestPendingSeconds":1e999}"#, "oldestPendingSeconds"),
        (#"{"state":{}}"#, "state"), (#"{"version":["x"]}"#, "version"), (#"{"upstreams":{}}"#, "upstreams"),
        (#"{"upstreams":[{"name":1}]}"#, "upstreams"), (#"{"storage":[]}"#, "storage"), (#"{"storage":{"dataBytes":1e400}}"#, "storage"),
        ("[]", "data"), ("1e999", "data"),
    ]) func aReportIsOfItsForm(text: String, fault: String?) throws {
        let report = try JSONValue.parse(Array(text.utf8))
        #expect(SiteReportForm.fault(in: report) == fault)
        let readable = SiteReportForm.readable(report)
        #expect(SiteReportForm.fault(in: readable) == nil)
        if let fault, fault != "data" { #expect(readable[fault] == .null) }
    }

    @Test func silenceIsToldOnceAndItsEndToo() {
        var watch = SilenceWatch(limit: .minutes(15), startedAt: Self.start)
        let never: [(name: String, heardAt: Timestamp?)] = [("a", nil), ("b", Self.start - .days(1))]
        #expect(watch.news(never, now: Self.start + .minutes(14)).isEmpty, "the time before the start does not count")
        let news = watch.news(never, now: Self.start + .minutes(15))
        #expect(news.map(\.site) == ["a", "b"] && news.allSatisfy(\.isSilent))
        #expect(news[0].summary == "a has not reported yet" && news[1].summary.hasPrefix("b has not reported since 20"))
        #expect(watch.news(never, now: Self.start + .minutes(16)).isEmpty)
        let later = Self.start + .minutes(17)
        let back = watch.news([("a", later), ("b", nil)], now: later)
        #expect(back.map(\.site) == ["a"] && back.allSatisfy { !$0.isSilent } && back[0].summary == "a reports again")
        #expect(back[0].json(at: later)["type"] == "rockpool.heard" && news[0].json(at: later)["data"]?["heardAt"] == .null)
        // A site that was removed is forgotten; a clock that was set back makes none silent.
        #expect(watch.news([], now: later).isEmpty)
        #expect(watch.news([("a", later)], now: Self.start - .days(1)).isEmpty)
    }

    @Test func onlyAReportOfTheSiteAndOfNowIsAccepted() throws {
        let signature = try #require(WebhookSignature(secrets: "old\nnew", code: Self.code))
        let body = Array("{}".utf8)
        let fields = try #require(WebhookSignature(secrets: "new", code: Self.code)).fields(id: "m1", at: Self.start, body: body)
        let message = try signature.verify(fields, body: body, now: Self.start + .minutes(5))
        #expect(message.id == "m1" && message.sentAt == Self.start)
        #expect(throws: WebhookSignature.Doubt.wrong) { try signature.verify(fields, body: body + [0], now: Self.start) }
        #expect(throws: WebhookSignature.Doubt.time(301)) { try signature.verify(fields, body: body, now: Self.start + .seconds(301)) }
        #expect(throws: WebhookSignature.Doubt.time(301)) { try signature.verify(fields, body: body, now: Self.start - .seconds(301)) }
        let stranger = try #require(WebhookSignature(secrets: "newer", code: Self.code)).fields(id: "m1", at: Self.start, body: body)
        #expect(throws: WebhookSignature.Doubt.wrong) { try signature.verify(stranger, body: body, now: Self.start) }
        for (name, value) in [
            (HTTPField.Name.webhookID, "m2"), (.webhookTimestamp, "1800000001"), (.webhookSignature, "v1,"), (.webhookSignature, "v2,AAAA"),
        ] {
            var changed = fields
            changed[name] = value
            #expect(throws: WebhookSignature.Doubt.wrong, "\(name)") { try signature.verify(changed, body: body, now: Self.start) }
        }
        for (name, value) in [(HTTPField.Name.webhookTimestamp, "-1"), (.webhookTimestamp, "99999999999999"), (.webhookID, "")] {
            var changed = fields
            changed[name] = value
            #expect(throws: WebhookSignature.Doubt.unsigned, "\(name)") { try signature.verify(changed, body: body, now: Self.start) }
        }
        #expect(throws: WebhookSignature.Doubt.unsigned) { try signature.verify([:], body: body, now: Self.start) }
    }

    @Test func aCollectorIsAReceiverWithoutAName() throws {
        var configuration = Configuration()
        configuration.fleet.report = SiteReportSettings(url: "https://office.example/v1/reports", site: "shop-1", secretFile: "/s")
        let receiver = try #require(RouteTable(configuration).upstreams.first)
        #expect(receiver.name == "report:https://office.example" && receiver.receiver == .report && !receiver.isDeclared)
    }
}
