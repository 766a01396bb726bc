// Whether an upstream compresses for requests with `Via`.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct ViaHabitTests {
    private static let request = RequestHead(
        method: .get, origin: OriginAddress(scheme: .https, host: "api.test"), target: "/", fields: [.acceptEncoding: "gzip, br"])
    private let start = Timestamp(seconds: 1_700_000_000)

    private func answer(_ type: String = "application/json", coding: String? = nil) -> ResponseHead {
        var head = ResponseHead(status: 200, fields: [.contentType: type])
        head.fields[.contentEncoding] = coding
        return head
    }

    @Test func viaStaysOutWhereThatHelps() {
        var habit = ViaHabit()
        #expect(!habit.withholds(at: start))
        habit.learn(from: answer(), length: nil, to: Self.request, hadVia: true, now: start)
        #expect(habit.withholds(at: start) && !habit.isProved)
        habit.learn(from: answer("text/html"), length: nil, to: Self.request, hadVia: false, now: start)
        #expect(habit.withholds(at: start))
        habit.learn(from: answer(coding: "gzip"), length: nil, to: Self.request, hadVia: false, now: start)
        #expect(habit.isProved && habit.withholds(at: start + .hours(23)))
        // A day later it is examined again.
        let later = start + .hours(25)
        #expect(!habit.withholds(at: later))
        habit.learn(from: answer(), length: nil, to: Self.request, hadVia: true, now: later)
        #expect(habit.withholds(at: later))
        habit.learn(from: answer(coding: "br"), length: nil, to: Self.request, hadVia: true, now: later)
        #expect(!habit.withholds(at: later) && !habit.isProved)
    }

    @Test func aTypeThatIsNeverCompressedIsTriedOnce() {
        var habit = ViaHabit()
        for _ in 1...3 {
            habit.learn(from: answer(), length: nil, to: Self.request, hadVia: !habit.withholds(at: start), now: start)
        }
        #expect(!habit.withholds(at: start))
        habit.learn(from: answer("text/css"), length: nil, to: Self.request, hadVia: true, now: start)
        #expect(habit.withholds(at: start))
    }

    @Test func answersThatMeanNothingChangeNothing() {
        var plain = Self.request
        plain.fields[.acceptEncoding] = nil
        var fixed = answer()
        fixed.fields[.cacheControl] = "no-transform"
        for (head, length, request) in [
            (answer(), Int64(100), Self.request), (answer("image/png"), nil, Self.request), (answer(), nil, plain),
            (fixed, nil, Self.request),
            (ResponseHead(status: 404, fields: [.contentType: "text/html"]), nil, Self.request),
        ] {
            var habit = ViaHabit()
            habit.learn(from: head, length: length, to: request, hadVia: true, now: start)
            #expect(!habit.withholds(at: start))
        }
    }
}
