// The reply to a retried lane.

/// The result of `POST /v1/operations/retry`.
struct LaneRetryReport: Decodable, Equatable {
    var retried: [String]
    var uncertain: [String]

    func lines(lane: String) -> [String] {
        if retried.isEmpty, uncertain.isEmpty { return ["nothing to retry in lane \(lane)"] }
        return retried.map { "\($0) will be retried" }
            + uncertain.map { "\($0) is not retried: it may have taken effect; retry it by its id if that may happen twice" }
    }
}
