// One finding of `rockpool doctor`.

/// The result of one check.
struct Finding: Codable, Hashable, Sendable {
    enum Result: String, Codable { case ok, warn, fail }

    var check: String
    var result: Result
    var detail: String
    /// The advice for the user; nil if none is needed.
    var advice: String?

    static func ok(_ check: String, detail: String) -> Finding { Finding(check: check, result: .ok, detail: detail) }

    static func warn(_ check: String, detail: String, advice: String) -> Finding {
        Finding(check: check, result: .warn, detail: detail, advice: advice)
    }

    static func fail(_ check: String, detail: String, advice: String) -> Finding {
        Finding(check: check, result: .fail, detail: detail, advice: advice)
    }
}
