// Reads through the gateway of the site that holds them, requests through one of several parent proxies, and the probes of both
// (docs/fleet.md#caches, docs/reference/configuration.md#several-parents).
import HTTPTypes
import RockpoolCore

extension UpstreamClient {
    /// The time to connect to a gateway of the same network.
    private static let connectLimit = TimeSpan.seconds(1)
    /// A gateway has this much longer than its origin: its answer may be that the origin is silent.
    private static let extraTime = TimeSpan.seconds(2)

    /// Asks the gateways of the site that hold a read.
    /// - Parameter direct: the request as it would be sent to the origin.
    /// - Returns: nil if the origin is to be asked.
    /// - Throws: `TransferFailure` for a request that was given up.
    func askParents(_ direct: OutboundRequest) async throws(TransferFailure) -> OriginReply? {
        let ways = parents.ways(to: direct.head)
        guard !ways.isEmpty else { return nil }
        let greatestAge = parents.greatestAge(of: direct.head.origin)
        var request = direct
        request.head.fields[.rockpoolPeer] = "1"
        (request.via, request.parentCredential, request.tls) = (nil, nil, TLSSettings())
        // The network of the site says nothing about the upstream's connection.
        (request.measured, request.spent) = ({ _, _ in }, { _, _ in })
        request.timeouts.connect = min(request.timeouts.connect, Self.connectLimit)
        request.timeouts.firstByte = request.timeouts.firstByte + Self.extraTime
        // A fetch that the owner has begun before this gateway's last write may lack it: then the request joins none.
        if .seconds(greatestAge) < direct.timeouts.connect + direct.timeouts.firstByte { request.head.limit(age: greatestAge) }
        for node in ways {
            request.peer = node
            do {
                var reply = try await origin.send(request)
                if reply.head.age > greatestAge, request.head.accepts(age: reply.head.age) {
                    // The owner's copy is fresh, but older than the write: it has to look at the origin.
                    reply.body.abandon()
                    request.head.limit(age: greatestAge)
                    reply = try await origin.send(request)
                }
                switch ParentAnswer.judge(reply.head, greatestAge: greatestAge) {
                case .usable:
                    parents.noteTaken()
                    reply.head.fields = HopByHop.stripped(answer: reply.head.fields)
                    return reply
                case .unusable:
                    reply.body.abandon()
                    return nil
                case .foreign:
                    reply.body.abandon()
                    parents.fail(node, because: "it answers, but not as a gateway")
                }
            } catch  where error.kind == .cancelled || error.kind == .unavailable {
                throw error
            } catch {
                parents.fail(node, because: error.proxyErrorName)
            }
        }
        return nil
    }

    /// Probes a gateway: it is the last recipient of the request, and answers by itself (RFC 9110 §7.6.2).
    func probe(parent node: String) async {
        var head = RequestHead(method: .options, origin: OriginAddress(scheme: .http, host: "gateway.invalid"), target: "/")
        head.fields[.maxForwards] = "0"
        head.fields[.rockpoolPeer] = "1"
        var request = OutboundRequest(
            head: head, timeouts: UpstreamTimeouts(connect: Self.connectLimit, firstByte: Self.extraTime, idle: Self.extraTime))
        request.peer = node
        guard let reply = try? await origin.send(request) else { return parents.probed(node, isAnswered: false) }
        let isAlive = ParentAnswer.isAlive(reply.head)
        // A gateway that hangs within its answer is not alive.
        let isWhole = (try? await reply.body.collect(upTo: .kib(64))) != nil
        parents.probed(node, isAnswered: isAlive && isWhole)
    }
}

// MARK: parent proxies

extension UpstreamClient {
    private static let probeLimits = UpstreamTimeouts(connect: .seconds(2), firstByte: .seconds(2), idle: .seconds(2))

    /// Sends a request by the first of these ways that takes it; directly where there is none.
    func send(_ request: OutboundRequest, through ways: [ParentSettings]) async throws(TransferFailure) -> OriginReply {
        guard ways.count > 1 else { return try await origin.send(request) }
        var request = request
        var last = TransferFailure(kind: .unavailable, sent: .no, detail: "no parent proxy")
        for way in ways {
            (request.via, request.parentCredential) = (way.url, way.credential)
            do throws(TransferFailure) {
                return try await origin.send(request)
            } catch {
                guard proxies.fail(way, after: error) else { throw error }
                last = error
            }
        }
        throw last
    }

    /// Probes a parent proxy: it is up once it takes a connection, whatever it makes of the request.
    func probe(proxy url: String) async {
        guard !reachability.isSwitchedOff(nil), let proxy = ParentProxy(url) else { return proxies.probed(url, isAnswered: false) }
        let place = OriginAddress(scheme: proxy.kind == .https ? .https : .http, host: proxy.address.host, port: proxy.address.port)
        var request = OutboundRequest(
            head: RequestHead(method: .head, origin: place, target: "/"), timeouts: Self.probeLimits, needsFreshConnection: true)
        // Whoever has configured it may have it at any address.
        request.isDeclared = true
        do throws(TransferFailure) {
            try await origin.send(request).body.abandon()
            proxies.probed(url, isAnswered: true)
        } catch {
            proxies.probed(url, isAnswered: ![.refused, .connectTimeout, .dns, .unavailable, .cancelled].contains(error.kind))
        }
    }
}

extension RequestHead {
    /// True if its directives accept a response of an age in seconds.
    fileprivate func accepts(age: Int64) -> Bool { CacheControl(request: fields).maxAge.map { age <= $0.seconds } ?? true }

    /// Accepts no response that is older, in seconds.
    fileprivate mutating func limit(age: Int64) {
        if accepts(age: age + 1) { fields.append(HTTPField(name: .cacheControl, value: "max-age=\(age)")) }
    }
}

extension ResponseHead {
    /// The age in seconds, as stated.
    fileprivate var age: Int64 { fields[.age].flatMap { Int64($0) } ?? 0 }
}
