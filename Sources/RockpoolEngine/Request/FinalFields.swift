// The fields that every reply carries, whatever produced it: `Via`, `Cache-Status`, `Proxy-Status`, `Date`.
import HTTPTypes
import RockpoolCore

/// Completes replies as the last step before they are sent.
struct FinalFields: Sendable {
    /// Rockpool's name in `Via`.
    let viaName: String
    let now: @Sendable () -> Timestamp

    /// The last step: adds the fields that every reply carries.
    func add(to reply: inout Reply, trace: Trace) {
        reply.trace = trace
        Via.appended(to: &reply.head.fields, version: "1.1", name: viaName)
        let status = trace.cacheStatus ?? CacheStatus(hit: false, detail: "generated")
        reply.head.fields.append(HTTPField(name: .cacheStatus, value: status.fieldValue))
        if let status = trace.proxyStatus { reply.head.fields.append(HTTPField(name: .proxyStatus, value: status.fieldValue)) }
        if !reply.head.fields.contains(.date) { reply.head.fields[.date] = HTTPDate.format(now()) }
    }
}
