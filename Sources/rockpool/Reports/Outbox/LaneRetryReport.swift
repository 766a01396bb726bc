// The reply to a retried lane.

/// The result of `POST /v1/operations/retry`.
struct LaneRetryReport: Decodable, Equatable {
    var retried: [String]
    var uncertain: [String]
    var held: [HeldReport]?

    /// - Parameter place: what was retried, for people.
    func lines(of place: String) -> [String] {
        if retried.isEmpty, uncertain.isEmpty, held == nil { return ["nothing to retry in \(place)"] }
        return retried.map { "\($0) will be retried" }
            + uncertain.map { "\($0) is not retried: it may have taken effect; retry it by its id if that may happen twice" }
            + (held ?? []).map(\.line)
    }
}

/// The operations of one upstream that `Retry-After` holds back.
struct HeldReport: Decodable, Equatable {
    var upstream: String
    var operations: Int
    var until: String

    var line: String {
        "\(upstream) demands to wait until \(ForPeople.time(until)): \(operations) held back (--now sends anyway)"
    }
}
