// What one gateway of a fleet has accepted, another knows at once (docs/fleet.md#reads).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension Engine {
    /// Reads what other nodes have accepted a moment ago, if the request may be about it: it has seen a later position, or names a local id that
    /// is not known here. No effect without a fleet.
    func look(for request: RequestHead) async {
        guard data.isOfFleet else { return }
        let floor = request.fields[.rockpoolSeen].flatMap { Int64($0) } ?? 0
        var target = request
        target.fields = [:]
        await data.learn(LocalIDScan.references(head: target, body: []).map(\.id), floor: floor)
    }

    /// Says up to which position a reply about a queued write has what the fleet has accepted.
    func nameSeen(in reply: inout Reply) {
        guard data.isOfFleet, reply.head.fields.contains(.rockpoolOperation) else { return }
        reply.head.fields[.rockpoolSeen] = "\(data.fleetPosition)"
    }
}
