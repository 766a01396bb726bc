// A whole engine over a scripted upstream, real stores and a manual clock, shared by the engine's and the listeners' tests.
package import HTTPTypes
import NIOCore
package import RockpoolCore
package import RockpoolEngine
import Synchronization

/// An engine and the parts that it is built on.
package final class ScriptedEngine: Sendable {
    package let clock: ManualClock
    package let origin: ScriptedOrigin
    package let store: TemporaryStore
    package let engine: Engine

    /// - Parameters:
    ///   - upstreams: by default one, `notes`, offline-first at `http://api.test`.
    ///   - cheapWhole: the largest representation fetched in the background after a HEAD or range request; 0 (never) by default.
    package init(
        upstreams: [Upstream] = [.notes()], cheapWhole: ByteCount = ByteCount(0), rule: @escaping ScriptedOrigin.Rule = { _ in .ok() },
        configure: (inout Configuration) -> Void = { _ in }
    ) throws {
        clock = ManualClock()
        origin = ScriptedOrigin(rule: rule)
        store = try TemporaryStore(clock: clock)
        var configuration = Configuration()
        configuration.upstreams = upstreams
        configure(&configuration)
        engine = Engine(
            configuration: configuration, cache: store.cache, data: store.data, origin: origin, viaName: "pool", logger: .silent,
            now: clock.reading, steady: clock.steady, cheapWhole: cheapWhole)
    }

    /// Sends one request to the engine and reads the reply to its end.
    @discardableResult
    package func ask(
        _ method: HTTPRequest.Method, _ target: String, _ fields: HTTPFields = [:], body: String? = nil,
        origin: OriginAddress = .notes
    ) async -> WholeReply {
        let request = RequestHead(method: method, origin: origin, target: target, fields: fields)
        let pipe = body.map { BodyPipe(whole: ByteBuffer(string: $0)) }
        return await ask(Exchange(request: request, body: pipe, bodyLength: body.map { Int64($0.utf8.count) }))
    }

    package func ask(_ exchange: Exchange) async -> WholeReply { await WholeReply(engine.respond(exchange)) }

    /// Marks the upstream as offline from now on; no request is sent.
    package func goOffline() {
        engine.reachability.record(.failed(.connectTimeout, detail: "connection_timeout"), for: "notes", now: clock.now)
    }

    package func comeOnline() { engine.reachability.record(.answered, for: "notes", now: clock.now) }
}

extension OriginAddress {
    package static let notes = OriginAddress(scheme: .http, host: "api.test")
}

extension Upstream {
    package static func notes(_ change: (inout Upstream) -> Void = { _ in }) -> Upstream {
        var upstream = Upstream(name: "notes", origin: .notes)
        change(&upstream)
        return upstream
    }
}

/// A reply with its whole body read.
package struct WholeReply: Sendable {
    package let head: ResponseHead
    package let body: String
    package let trace: Trace
    /// The failure that truncated the body; nil when the body is complete.
    package let failure: TransferFailure?

    package init(_ reply: Reply) async {
        head = reply.head
        trace = reply.trace
        var bytes = ByteBuffer()
        var failure: TransferFailure?
        switch reply.body {
        case .none: break
        case .bytes(let all): bytes = all
        case .file(let path, let offset, let length, _):
            bytes = ByteBuffer(bytes: FileText.read(path).dropFirst(Int(offset)).prefix(Int(length)))
        case .stream(let source, _):
            do throws(TransferFailure) {
                while var chunk = try await source.next() { bytes.writeBuffer(&chunk) }
            } catch { failure = error }
        }
        body = String(buffer: bytes)
        self.failure = failure
    }

    package var status: Int { head.status }
    package subscript(_ name: String) -> String? { HTTPField.Name(name).flatMap { head.fields[$0] } }
    package var cacheStatus: String? { self["Cache-Status"] }
    package var proxyStatus: String? { self["Proxy-Status"] }
    /// The body as JSON; null when the body is not JSON.
    package var json: JSONValue { (try? JSONValue.parse(Array(body.utf8))) ?? .null }
}
