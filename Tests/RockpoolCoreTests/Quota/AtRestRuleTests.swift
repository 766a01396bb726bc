// The rule for compressing a body at rest (docs/storage.md#what-is-stored-where, "At rest").
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct AtRestRuleTests {
    @Test(arguments: [
        ("application/json", 1024, true), ("application/json", 1023, false), ("application/json", 1_048_576, true),
        ("application/json", 1_048_577, false), ("text/html; charset=utf-8", 5000, true), ("Application/Problem+JSON", 5000, true),
        ("image/svg+xml", 5000, true), ("image/png", 5000, false), ("video/mp4", 5000, false), ("application/zip", 5000, false),
        ("application/octet-stream", 5000, false), ("font/woff2", 5000, false),
    ])
    func byTypeAndLength(type: String, length: Int64, isWorth: Bool) {
        let head = ResponseHead(status: 200, fields: [.contentType: type])
        #expect(AtRest.isWorthTrying(head, length: length) == isWorth)
    }

    @Test(arguments: [("gzip", false), ("br", false), ("identity", true), ("Identity", true), ("", true), ("gzip, br", false)])
    func whatIsEncodedIsLeftAlone(coding: String, isWorth: Bool) {
        let head = ResponseHead(status: 200, fields: [.contentType: "text/plain", .contentEncoding: coding])
        #expect(AtRest.isWorthTrying(head, length: 5000) == isWorth)
    }

    @Test func whatSaysNothingOfItselfIsLeftAlone() {
        #expect(!AtRest.isWorthTrying(ResponseHead(status: 200), length: 5000))
    }

    @Test func anEighthHasToBeSaved() { #expect([8, 1024, 9].map(AtRest.most) == [7, 896, 8]) }

    /// Random bytes are not tried; text of any script and its usual codings are.
    @Test func onlyDenseBytesAreLeftOut() {
        var state: UInt64 = 7
        let random = (0..<1_024).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
        #expect(AtRest.isDense(random))
        #expect(!AtRest.isDense(Array(random.prefix(255))))
        let texts = [
            #"{"id":17,"title":"low water","tags":["a","b"],"at":"2026-11-27T05:00:00Z"},"#, "潮の満ち引きと岩場の生き物についての覚え書き。",
            "Приливы и отливы в скальных ваннах", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        ]
        for text in texts { #expect(!AtRest.isDense(Array(String(repeating: text, count: 20).utf8)), "\(text)") }
        #expect(!AtRest.isDense((0..<1_024).map { UInt8($0 % 128) }))
    }
}
