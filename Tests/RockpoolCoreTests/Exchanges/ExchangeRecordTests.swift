// Records of exchanges: no secret, the filter, the curl command and the HTTP Archive (docs/reference/admin-api.md#requests).
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ExchangeRecordTests {
    private func record(
        _ method: String = "GET", _ url: String = "http://api.test/v1/notes/1", status: Int = 200, verdict: String = "miss",
        request: HTTPFields = [:], response: HTTPFields = [:]
    ) -> ExchangeRecord {
        var record = ExchangeRecord(
            id: "a-1", at: Timestamp(seconds: 100), method: method, url: url, status: status, verdict: verdict, requestFields: request,
            responseFields: response)
        record.upstream = "notes"
        return record
    }

    @Test func secretsAreInNoForm() throws {
        let secret = "planted"
        let named = try #require(HTTPField.Name("x-my-secret"))
        let one = record(
            url("?token=\(secret)&page=2"),
            request: [.authorization: secret, .cookie: secret, named: secret, .referer: url("?api_key=\(secret)"), .accept: "text/plain"],
            response: [.setCookie: secret, .location: url("?access_token=\(secret)")])
        let texts = [one.json, one.detailedJSON, one.har].map { String(decoding: $0.serialized(), as: UTF8.self) }
        #expect(texts.filter { $0.contains(secret) } == [])
        #expect(texts[1].contains("page=2") && texts[1].contains("text\\/plain") || texts[1].contains("text/plain"))
    }

    private func url(_ query: String) -> String { "http://api.test/a\(query)" }
    private func record(_ url: String, request: HTTPFields, response: HTTPFields) -> ExchangeRecord {
        record("GET", url, request: request, response: response)
    }

    @Test(arguments: [
        ("5xx", 503, true), ("5xx", 499, false), ("404", 404, true), ("404", 405, false), ("5XX", 500, true),
    ]) func statusesAndClassesMatch(pattern: String, status: Int, matches: Bool) throws {
        var filter = ExchangeFilter()
        filter.statuses = [try #require(ExchangeFilter.StatusPattern(pattern))]
        #expect(filter.matches(record(status: status)) == matches)
    }

    @Test(arguments: ["", "5x", "5xxx", "x5x", "-10", "+20", "4x4", "abc"]) func otherTextsAreNoStatus(text: String) {
        #expect(ExchangeFilter.StatusPattern(text) == nil)
    }

    @Test func everyCriterionMustHold() {
        var filter = ExchangeFilter()
        filter.upstreams = ["notes"]
        filter.methods = ["GET"]
        filter.verdicts = ["miss", "pass"]
        filter.text = "/NOTES/"
        filter.since = Timestamp(seconds: 100)
        #expect(filter.matches(record()))
        #expect(!filter.matches(record("PUT")))
        #expect(!filter.matches(record(verdict: "hit")))
        #expect(!filter.matches(record("GET", "http://api.test/v1/things/1")))
        filter.since = Timestamp(seconds: 101)
        #expect(!filter.matches(record()))
        filter.since = nil
        filter.upstreams = ["other"]
        #expect(!filter.matches(record()))
    }

    @Test func theCommandNamesWhatIsLeftOut() throws {
        var one = record("POST", "http://api.test/v1/notes?key=1", request: [.contentType: "application/json", .contentLength: "7"])
        one.client = "p-1"
        let curl = try #require(one.curl)
        #expect(curl.hasPrefix("# add the credential it was sent with, put back the secrets of its URL, put its body into the file BODY\n"))
        #expect(
            curl.contains("--request 'POST'") && curl.contains("--data-binary '@BODY'") && !curl.lowercased().contains("content-length"))
        #expect(curl.hasSuffix("--url 'http://api.test/v1/notes?key=REDACTED'"))
        #expect(record().curl == "curl --globoff --path-as-is --request 'GET' --url 'http://api.test/v1/notes/1'")
    }

    @Test func thePhasesOfAnArchiveAddUp() throws {
        var one = record()
        (one.headAfter, one.endAfter) = (90_000, 100_000)
        var timings = TransferTimings()
        (timings.queue, timings.dns, timings.connect, timings.tls, timings.firstByte) = (1000, 2000, 3000, 4000, 70_000)
        for phases in [timings, nil] {
            one.timings = phases
            let document = try #require(one.har["timings"])
            let sum = ["blocked", "dns", "connect", "send", "wait", "receive"].reduce(0.0) {
                $0 + max(0, document[$1]?.number?.double ?? .nan)
            }
            #expect(abs(sum - 100) < 0.001 && one.har["time"]?.number?.double == 100)
        }
    }
}
