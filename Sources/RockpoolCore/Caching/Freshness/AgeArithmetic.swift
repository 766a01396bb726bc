// The age and freshness of one stored response, with every term named as in RFC 9111 §4.2.3, for `explain`.
import HTTPTypes

/// The terms behind a `Freshness`, of which decisions use only the result.
package struct AgeArithmetic: Hashable, Sendable {
    /// The time the request was sent, the time the response was received, and the time of the calculation.
    package let requestTime, responseTime, now: Timestamp
    /// `Date`, or the time of receipt if `Date` is missing or invalid.
    package let date: Timestamp
    /// The received `Age`; zero without one.
    package let ageValue: TimeSpan
    /// Time since the response was received; never negative.
    package let residentTime: TimeSpan
    /// `corrected_initial_age`: the age at receipt that reuse decisions use.
    package let correctedInitialAge: TimeSpan
    /// `current_age`, the lifetime, and the source of the lifetime.
    package let freshness: Freshness

    package init(_ stored: StoredResponse, now: Timestamp) {
        requestTime = stored.requestTime
        responseTime = stored.responseTime
        self.now = now
        date = stored.validity.date
        let age = stored.head.fields.first { $0.name == .age }?.value.prefix { $0 != "," }
        ageValue = age.flatMap { DeltaSeconds.parse(FieldList.trimmed($0)) } ?? .zero
        residentTime = max(.zero, now - stored.responseTime)
        correctedInitialAge = stored.validity.initialAge
        freshness = Freshness.of(stored, now: now)
    }

    /// `max(0, response_time - date_value)` in whole seconds, the resolution of HTTP dates.
    package var apparentAge: TimeSpan { .seconds(max(0, responseTime.seconds.subtractedClamped(date.seconds))) }
    /// `response_time - request_time`; never negative.
    package var responseDelay: TimeSpan { max(.zero, responseTime - requestTime) }
    /// `age_value + response_delay`.
    package var correctedAgeValue: TimeSpan { ageValue + responseDelay }

    /// One line per term: its name, its formula and its value in seconds.
    package var lines: [String] {
        [
            "apparent_age          = max(0, response_time - date_value) = \(apparentAge.secondsText)",
            "response_delay        = response_time - request_time = \(responseDelay.secondsText)",
            "corrected_age_value   = age_value + response_delay = \(ageValue.secondsText) + \(responseDelay.secondsText)"
                + " = \(correctedAgeValue.secondsText)",
            "corrected_initial_age = max(apparent_age, corrected_age_value) = \(correctedInitialAge.secondsText)",
            "resident_time         = now - response_time = \(residentTime.secondsText)",
            "current_age           = corrected_initial_age + resident_time = \(freshness.age.secondsText)",
            "freshness_lifetime    = \(freshness.lifetime.secondsText) (\(freshness.source.words))",
            "remaining             = freshness_lifetime - current_age = \(freshness.remaining.secondsText)",
        ]
    }

    /// The terms as a JSON object; durations in seconds.
    package var json: JSONValue {
        [
            ("requestTime", .string(RFC3339.format(requestTime))), ("responseTime", .string(RFC3339.format(responseTime))),
            ("dateValue", .string(RFC3339.format(date))), ("now", .string(RFC3339.format(now))), ("ageValue", .seconds(of: ageValue)),
            ("apparentAge", .seconds(of: apparentAge)), ("responseDelay", .seconds(of: responseDelay)),
            ("correctedAgeValue", .seconds(of: correctedAgeValue)), ("correctedInitialAge", .seconds(of: correctedInitialAge)),
            ("residentTime", .seconds(of: residentTime)), ("currentAge", .seconds(of: freshness.age)),
            ("freshnessLifetime", .seconds(of: freshness.lifetime)), ("source", .string(freshness.source.rawValue)),
            ("remaining", .seconds(of: freshness.remaining)),
        ].object
    }
}

extension [(String, JSONValue)] {
    /// An object with these members in this order.
    var object: JSONValue { .object(JSONObject(self)) }
}

extension JSONValue {
    /// A duration in seconds, with up to three decimals for milliseconds.
    static func seconds(of span: TimeSpan) -> JSONValue { .number(JSONNumber(checked: span.secondsText)) }
}

extension TimeSpan {
    /// Seconds in decimal digits: `90`, `-0.5`. Also a JSON number.
    var secondsText: String {
        let magnitude = milliseconds.magnitude
        var text = "\(milliseconds < 0 ? "-" : "")\(magnitude / 1000)"
        if magnitude % 1000 != 0 {
            text += "." + "\(1000 + magnitude % 1000)".dropFirst()
            while text.hasSuffix("0") { text.removeLast() }
        }
        return text
    }
}

extension Freshness.Source {
    /// The source of the lifetime, in words.
    var words: String {
        switch self {
        case .sMaxAge: "s-maxage"
        case .maxAge: "max-age"
        case .expires: "Expires - Date"
        case .route: "the route's ttl"
        case .assigned: "the ttl of the route or of the category"
        case .heuristic: "heuristic: a tenth of the time since Last-Modified, a day at most"
        case .none: "nothing names one"
        }
    }
}
