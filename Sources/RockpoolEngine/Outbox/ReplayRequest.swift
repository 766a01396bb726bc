// An operation in the form in which conflict resolution compares it.
import RockpoolCore

/// An operation as its upstream would receive it, without credential and key.
struct ReplayRequest: Sendable {
    var head: RequestHead
    var body: [UInt8]
    var resource: Resource
}
