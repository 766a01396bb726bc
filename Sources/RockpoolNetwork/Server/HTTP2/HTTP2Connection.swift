// HTTP/2 connections with clients: each stream is an exchange on the same handler as an HTTP/1 connection (RFC 9113).
import NIOCore
import NIOHTTP1
import NIOHTTP2
import RockpoolCore
import RockpoolEngine

/// Installs the handlers of an HTTP/2 connection.
enum HTTP2Connection {
    /// The maximum number of concurrent streams (RFC 9113 §5.1.2).
    static let maximumStreams = 100
    /// The initial window of a stream in bytes: request data that the client may send before it is read (§5.2).
    static let window = Int.kib(256)
    /// The longest time a client may receive nothing on any of its streams before its connection is closed; a sixth of the idle limit if
    /// that is less.
    static let patience = TimeAmount.seconds(10)
    /// The maximum number of streams that a client may reset in 30 seconds (CVE-2023-44487).
    static let resets = 200
    /// The time in which a client may send 200 pings and other control frames: a gRPC client measures its line by one ping for each turn of it.
    static let controlFrames = TimeAmount.milliseconds(100)
    /// The maximum number of CONTINUATION frames of one head (CVE-2024-27316).
    static let continuations = 5

    /// - Parameter scheme: the scheme that requests must have: `https` within TLS.
    static func install(
        on channel: any Channel, service: ConnectionService, open: OpenConnection?, scheme: OriginAddress.Scheme = .https
    ) throws {
        var connection = NIOHTTP2Handler.ConnectionConfiguration()
        connection.initialSettings = [
            HTTP2Setting(parameter: .maxConcurrentStreams, value: maximumStreams),
            HTTP2Setting(parameter: .maxHeaderListSize, value: Int(clamping: service.limits.headBytes.bytes)),
            HTTP2Setting(parameter: .initialWindowSize, value: window),
        ]
        connection.maximumSequentialContinuationFrames = continuations
        connection.controlFrameRateLimit.windowLength = controlFrames
        var stream = NIOHTTP2Handler.StreamConfiguration()
        stream.streamResetFrameRateLimit.maximumCount = resets
        let frames = NIOHTTP2Handler(mode: .server, connectionConfiguration: connection, streamConfiguration: stream)
        let closing = NIOHTTP2ServerConnectionManagementHandler(
            eventLoop: channel.eventLoop,
            configuration: .init(maxIdleTime: nil, maxAge: nil, maxGraceTime: nil, keepalive: nil))
        let backlog = StreamBacklog(
            patience: min(patience, .milliseconds(service.timeouts.idle.milliseconds / 6)), budget: open?.account?.memory ?? .own)
        let count = StreamCount(service: service, open: open, backlog: backlog)
        let fastPath = HTTP2FastPathHandler(service: service, count: count, scheme: scheme, on: channel.eventLoop)
        let arrivals = NIOLoopBound(fastPath, eventLoop: channel.eventLoop)
        let reading = NIOLoopBound(
            ConnectionWindow(target: 4 * window, memory: { open?.account?.memory }), eventLoop: channel.eventLoop)
        // A stream is writable while it has nothing unsent (to within two bytes: both marks are exclusive).
        let streams = HTTP2StreamMultiplexer(
            mode: .server, channel: channel, targetWindowSize: window, outboundBufferSizeHighWatermark: 2,
            outboundBufferSizeLowWatermark: 1
        ) { stream in
            stream.eventLoop.makeCompletedFuture {
                let gate = StreamGate(backlog, scheme: scheme) { count, stream in reading.value.delivered(count, on: stream) }
                try stream.pipeline.syncOperations.addHandlers([
                    gate, HTTP2FramePayloadToHTTP1ServerCodec(),
                    ConnectionHandler(
                        service: service, open: nil, wire: .stream, backlog: backlog, account: open?.account,
                        plain: arrivals.value.takeArriving()),
                ])
            }
        }
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(LingeringClose(), position: .first)
        if scheme == .https { try pipeline.addHandler(RecordBatch()) }
        try pipeline.addHandlers([frames, fastPath, count, reading.value, streams, closing])
    }
}
