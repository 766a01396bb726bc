// Limits that are measured now and then: the age of the oldest write, the storage, absent upstreams (docs/guide/operating.md#alarms).

/// One measurement of a running server.
package struct NoticeReadings: Sendable {
    /// The oldest waiting write; nil without one.
    package var oldest: (id: String, upstream: String, age: TimeSpan, error: String?)?
    package var dataBytes: Int64 = 0
    package var dataLimitBytes: Int64 = 0
    /// The faults of stores that refuse writes, in words.
    package var faults: [String] = []
    /// Upstreams without an answer, with the time since then.
    package var absent: [(upstream: String, time: TimeSpan, error: String?)] = []

    /// Routes that pause after mass refusals.
    package var pausedRoutes: [(upstream: String, pause: RoutePause)] = []

    package init() {}

    /// Returns a notice for each limit of `rule` that is exceeded.
    package func notices(for rule: NoticeRule) -> [Notice] {
        var notices: [Notice] = []
        if rule.on.contains(.oldestPending), let oldest, oldest.age >= rule.oldestPending {
            var notice = Notice(.oldestPending, upstream: oldest.upstream)
            notice.operations = [oldest.id]
            notice.measure = "has waited for \(oldest.age.rounded)"
            notice.cause = oldest.error
            notices.append(notice)
        }
        if rule.on.contains(.storage) {
            let percent = dataLimitBytes > 0 ? dataBytes * 100 / dataLimitBytes : 0
            if let fault = faults.first {
                var notice = Notice(.storage)
                notice.measure = fault
                notices.append(notice)
            } else if percent >= Int64(rule.storagePercent) {
                var notice = Notice(.storage)
                notice.measure = "The state directory holds \(percent)% of storage.data_limit"
                notices.append(notice)
            }
        }
        if rule.on.contains(.away) {
            for absence in absent where absence.time >= rule.away {
                var notice = Notice(.away, upstream: absence.upstream)
                notice.measure = "has not answered for \(absence.time.rounded)"
                notice.cause = absence.error
                notices.append(notice)
            }
        }
        if rule.on.contains(.massRefusal) {
            for (upstream, pause) in pausedRoutes {
                var notice = Notice(.massRefusal, upstream: upstream)
                notice.measure = pause.route
                notice.cause = "different writes met \(pause.cause)"
                notices.append(notice)
            }
        }
        return notices
    }
}

extension TimeSpan {
    /// The duration in whole seconds or minutes, for people.
    fileprivate var rounded: TimeSpan {
        seconds < 120 ? .seconds(seconds) : .minutes(seconds / 60)
    }
}
