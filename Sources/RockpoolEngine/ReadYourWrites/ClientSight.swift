// Notes what replies show their clients (docs/outbox.md#sight).
import Foundation
import HTTPTypes
import NIOCore
import RockpoolCore
import RockpoolStore
import Synchronization

/// The `Sight` of one server.
final class ClientSight: Sendable {
    private let state = Mutex(Sight())
    private let moments = Atomic<UInt64>(0)
    /// `Sight.changes`.
    private let changes = Atomic<UInt64>(0)

    /// Counts a moment: those of later calls are greater.
    func moment() -> UInt64 { moments.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Notes what a hot reply shows. Where nothing has changed since it was noted last, that costs a comparison.
    func note(_ showing: Showing, at url: String) {
        guard showing.notedAt.load(ordering: .relaxed) != changes.load(ordering: .acquiring) else { return }
        let now = note(showing.state, at: url, to: showing.viewer, asked: moment())
        showing.notedAt.store(now, ordering: .relaxed)
    }

    /// Notes what a reply shows.
    /// - Parameter asked: the moment when the client asked.
    /// - Returns: `Sight.changes`.
    @discardableResult
    func note(_ shown: ShownState, at url: String, to viewer: String?, asked: UInt64) -> UInt64 {
        change { $0.note(shown, at: url, to: viewer ?? "", asked: asked) }
    }

    /// Notes the end of a write.
    func note(_ answer: ResponseHead, to request: RequestHead, by viewer: String?) {
        let tag = answer.fields[.eTag].flatMap { EntityTag($0) }
        let version = tag.flatMap { $0.isStrong && LocalETag($0) == nil ? $0.fieldValue : nil }
        let moment = moment()
        change {
            $0.note(writeTo: request.url, by: viewer ?? "", version: version, at: moment)
            // What lies at a destination is another thing now.
            if let destination = WebDAVEffect.destination(of: request) {
                $0.note(writeTo: request.at(destination).url, by: viewer ?? "", version: nil, at: moment)
            }
        }
    }

    /// What a write of a viewer builds on.
    func ground(of url: String, for viewer: String?, replacement: JSONValue? = nil) -> Sight.Ground {
        state.withLock { $0.ground(of: url, for: viewer ?? "", replacement: replacement) }
    }

    /// The present state.
    var current: Sight { state.withLock { $0 } }

    /// Begins with the state of an earlier run; every moment from now on is later.
    func begin(with earlier: Sight) {
        _ = moment()
        change { $0 = earlier }
    }

    @discardableResult
    private func change(_ work: (inout Sight) -> Void) -> UInt64 {
        state.withLock { sight in
            work(&sight)
            changes.store(sight.changes, ordering: .releasing)
            return sight.changes
        }
    }
}

extension RoutePlan {
    /// True for a read of what its client may change later: an item of a declared resource, or a path without one.
    var showsState: Bool {
        guard !isWrite, upstream != nil, route?.kind != .s3, route?.kind != .graphql else { return false }
        guard let entity, entity.resource != nil else { return true }
        return entity.isItem && entity.action == nil
    }

    /// True for a read of an item of a declared resource: its content may be the base of a merge.
    var showsItem: Bool { showsState && entity?.resource != nil }
}

extension ClientSight {
    /// Notes what a reply shows. The content of an item is noted as it passes, if it is not at hand.
    /// - Parameter asked: the moment when the client asked.
    func note(_ reply: inout Reply, to context: RequestContext, asked: UInt64, from cache: CacheStore) async {
        let (head, fetchedAt, url, viewer) = (reply.head, context.trace.fetchedAt, context.request.url, context.identity.partition)
        let isItem = context.plan.showsItem && head.status == 200 && MediaType.isJSON(head.fields)
        var content: [UInt8]?
        switch reply.body {
        case .stream(let source, _?) where isItem:
            if let whole = (source as? BodyPipe)?.takeWhole(upTo: ShownState.contentLimit) {
                reply.body = .bytes(whole)
                content = Array(whole.readableBytesView)
            }
        case .bytes, .file:
            guard isItem, let whole = await reply.body.collect(upTo: ShownState.contentLimit, from: cache) else { break }
            content = Array(whole.readableBytesView)
        case .stream, .none: break
        }
        if let shown = ShownState(head, content: content, fetchedAt: fetchedAt) { note(shown, at: url, to: viewer, asked: asked) }
        guard isItem, case .stream(let source, let length) = reply.body, length ?? 0 <= Int64(ShownState.contentLimit) else { return }
        let body = ShownBody(source, length: length) { [self] content in
            guard let shown = ShownState(head, content: content, fetchedAt: fetchedAt) else { return }
            note(shown, at: url, to: viewer, asked: asked)
        }
        reply.body = .stream(body, length: length)
    }
}

// MARK: over a restart

extension ClientSight {
    private static func file(in directory: String) -> String { "\(directory)/sight.json" }

    /// Keeps the versions for the next start, at a clean stop: nothing is under way any more. A failure is no loss but of these.
    func keep(in directory: String) {
        let bytes = current.document().serialized()
        let file = Self.file(in: directory)
        try? FileManager.default.removeItem(atPath: file)
        _ = FileManager.default.createFile(atPath: file, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
    }

    /// Takes up the versions of the last run, if it was stopped cleanly. They are gone then: after a crash they would be old.
    func takeUp(from directory: String) {
        let file = Self.file(in: directory)
        guard let data = FileManager.default.contents(atPath: file) else { return }
        try? FileManager.default.removeItem(atPath: file)
        guard let document = try? JSONValue.parse(Array(data)) else { return }
        begin(with: Sight(document: document))
    }
}
