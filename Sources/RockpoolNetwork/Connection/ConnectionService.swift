// What every connection of a listener shares: the engine, the limits, the way to tunnels.
import Logging
import NIOCore
import NIOHTTP1
import RockpoolCore
import RockpoolEngine
import Synchronization

/// Shared by the connections of one listener.
struct ConnectionService: Sendable {
    let engine: Engine
    private(set) var resolution: TargetResolution
    let timeouts: ClientTimeouts
    let limits: ClientLimits
    /// Our name in `Via`, unique per instance.
    let viaName: String
    let dialer: TunnelDialer
    /// Certificates for the tunnels we decrypt.
    let contexts: LeafContexts
    let logger: Logger

    /// The same within a decrypted tunnel to `origin`.
    func inside(_ origin: OriginAddress) -> ConnectionService {
        var service = self
        service.resolution = TargetResolution(
            role: .intercepted(origin), ports: resolution.ports, listener: origin.url, ownPorts: resolution.ownPorts)
        return service
    }

    /// Makes an HTTP/1 connection of a channel. `wire` is what its bytes go through.
    func installHTTP1(on channel: any Channel, open: OpenConnection?, wire: ReplyWire) throws {
        var decoding = NIOHTTPDecoderLimitConfiguration()
        decoding.maxHeaderFieldSize = Int(clamping: limits.fieldBytes.bytes)
        decoding.maxHeaderListSize = Int(clamping: limits.headBytes.bytes)
        decoding.maxHeaderFieldCount = limits.fields
        let decoder = HTTPRequestDecoder(
            leftOverBytesStrategy: .forwardBytes, informationalResponseStrategy: .drop, limitConfiguration: decoding)
        let connection = ConnectionHandler(service: self, open: open, wire: wire)
        try channel.pipeline.syncOperations.addHandlers([HotPath(connection), ByteToMessageHandler(decoder), connection])
    }
}

/// Counts connections, so that the limit holds over all listeners, and knows them for the drain at the end.
///
/// At the limit the connection that has been idle longest makes room: a crowd that only sits there cannot keep others out.
package final class OpenConnections: Sendable {
    private let state = Mutex<[ObjectIdentifier: OpenConnection]>([:])
    private let limit: Int

    package init(limit: Int) { self.limit = limit }

    package var count: Int { state.withLock { $0.count } }

    /// Nil when the limit is reached and every connection is at work.
    func admit(_ channel: any Channel) -> OpenConnection? {
        let connection = OpenConnection(channel)
        let (isAdmitted, leaving) = state.withLock { open -> (Bool, OpenConnection?) in
            var leaving: OpenConnection?
            if open.count >= limit {
                leaving = open.values.filter(\.isIdle).min { $0.idleSince < $1.idleSince }
                guard let leaving else { return (false, nil) }
                open[ObjectIdentifier(leaving.channel)] = nil
            }
            open[ObjectIdentifier(channel)] = connection
            return (true, leaving)
        }
        // After what it is still being sent, if anything.
        leaving?.channel.pipeline.fireUserInboundEventTriggered(DrainEvent())
        guard isAdmitted else { return nil }
        channel.closeFuture.whenComplete { [self] _ in state.withLock { $0[ObjectIdentifier(channel)] = nil } }
        return connection
    }

    /// Tells every connection to end after the exchange it is in.
    package func drain() {
        for channel in state.withLock({ $0.values.map(\.channel) }) { channel.pipeline.fireUserInboundEventTriggered(DrainEvent()) }
    }

    /// Closes what is still there.
    package func closeAll() {
        for channel in state.withLock({ $0.values.map(\.channel) }) { channel.close(promise: nil) }
    }
}

/// One connection, and since when it has been between requests: a number, so that a request takes no lock to move it.
final class OpenConnection: Sendable {
    let channel: any Channel
    private let idleNanoseconds: Atomic<UInt64>

    fileprivate init(_ channel: any Channel) {
        self.channel = channel
        idleNanoseconds = Atomic(NIODeadline.now().uptimeNanoseconds)
    }

    var isIdle: Bool { idleSince != .max }
    fileprivate var idleSince: UInt64 { idleNanoseconds.load(ordering: .relaxed) }

    func noteWork() { idleNanoseconds.store(.max, ordering: .relaxed) }
    func noteIdle(since now: NIODeadline) { idleNanoseconds.store(now.uptimeNanoseconds, ordering: .relaxed) }
}

/// The server is stopping: finish what is under way, take nothing new.
struct DrainEvent: Sendable {}
