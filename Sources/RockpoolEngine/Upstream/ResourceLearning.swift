// Learns the resources of upstreams that declare none from what is stored of their answers, behind the traffic (docs/outbox.md#learning).
import HTTPTypes
import Logging
import OrderedCollections
package import RockpoolCore
import RockpoolStore
import ServiceLifecycle
import Synchronization

/// Takes answers as they were stored, one at a time, and makes what was confirmed part of the routes. Survives restarts.
package final class ResourceLearning: Sendable {
    /// The largest body in bytes from which something is learned, and the most answers that wait; others pass unseen.
    private static let bodyLimit = Int.kib(256)
    private static let waitingLimit = 64
    /// The most URLs of descriptions for each upstream.
    private static let linkLimit = 8
    /// The pause between two answers, so that learning takes little of a processor.
    private static let pause = Duration.milliseconds(5)

    private enum Seen: Sendable {
        case stored(CacheEntry)
        /// A create, and whether it addressed no resource when it was sent.
        case create(AnsweredWrite, owner: String, isNew: Bool)
        /// A path whose answer may not be stored.
        case unstored(String)
        /// What may be a description of the API.
        case description(CacheEntry)
        /// A PUT, with an answer that shows its item.
        case put(AwaitedPut, JSONValue)
        /// A PUT, and the first read of its item after it.
        case read(AwaitedPut, CacheEntry)
    }

    /// A PUT that has left something out, until a read shows what has become of that.
    private struct AwaitedPut: Sendable {
        let put: PartialPut
        let upstream: String
        /// The name of the partition of its identity.
        let owner: String
        /// What was asked for later shows the state after it.
        let since: Tick
    }

    private struct State {
        var learners: [String: ResourceLearner] = [:]
        var waiting: [(upstream: String, seen: Seen)] = []
        /// The URLs that answers have named as descriptions, by upstream.
        var linked: [String: OrderedSet<String>] = [:]
        /// PUTs of which the next read will show something, by the URLs of their items; the newest last.
        var puts: OrderedDictionary<String, AwaitedPut> = [:]
        var isRunning = false
        /// nil until it is known what earlier runs have learned.
        var isRead = false
    }

    private let data: DataStore
    /// What upstreams answer to writes.
    let replies: LearnedReplies
    /// Reads the decoded body of an entry; nil if it is gone, or longer than the limit.
    private let content: @Sendable (_ entry: CacheEntry, _ limit: Int) async throws -> [UInt8]?
    /// The stored answers to a read of a URL, of a partition and those that all share.
    private let copies: @Sendable (_ url: String, _ partition: StoragePartition) async -> [CacheEntry]
    /// Reads JSON, and what else descriptions are written in.
    private let document: @Sendable (_ bytes: [UInt8]) -> JSONValue?
    private let active: ActiveConfiguration
    private let logger: Logger
    /// Called after the routes have changed.
    private let onChange: @Sendable () -> Void
    private let state = Mutex(State())

    init(
        data: DataStore, active: ActiveConfiguration, logger: Logger,
        content: @escaping @Sendable (_ entry: CacheEntry, _ limit: Int) async throws -> [UInt8]?,
        copies: @escaping @Sendable (_ url: String, _ partition: StoragePartition) async -> [CacheEntry],
        document: @escaping @Sendable (_ bytes: [UInt8]) -> JSONValue?, onChange: @escaping @Sendable () -> Void
    ) {
        (self.data, self.active, self.logger) = (data, active, logger)
        replies = LearnedReplies(data: data, logger: logger)
        (self.content, self.copies, self.document, self.onChange) = (content, copies, document, onChange)
    }

    /// Makes what earlier runs have learned part of the routes.
    package func takeUp() async {
        var known: [(upstream: String, learner: ResourceLearner)] = []
        do { known = try await data.learnedShapes().map { ($0.upstream, ResourceLearner(json: $0.value)) } } catch {
            logger.failed("what was learned of upstreams could not be read", error: error)
        }
        let found = state.withLock { state in
            guard !state.isRead else { return [(upstream: String, learner: ResourceLearner)]() }
            state.isRead = true
            for one in known { state.learners[one.upstream] = one.learner }
            return known
        }
        for one in found { active.take(one.learner.shown, of: one.upstream) }
        if !found.isEmpty { onChange() }
    }

    // MARK: evidence

    /// Takes a response that was stored as the answer to a read.
    func note(_ entry: CacheEntry, plan: RoutePlan) {
        noteAfterPut(entry)
        guard let upstream = learner(of: plan), entry.key.method == "GET", entry.response.head.status == 200,
            entry.response.part == nil, plan.route?.isReadByBody != true
        else { return }
        if plan.upstream?.learn.description == .linked { noteLinks(of: entry, upstream: upstream) }
        guard entry.response.bodyLength <= Int64(Self.bodyLimit), MediaType.isJSON(entry.response.head.fields) else { return }
        take(.stored(entry), of: upstream)
    }

    /// Takes the URLs that an answer names as descriptions of its API, and the answer itself if it is one of them, or is one by its name.
    private func noteLinks(of entry: CacheEntry, upstream: String) {
        guard let request = try? RequestHead(url: entry.key.url) else { return }
        if APIDescription.isMetadata(request.path) || state.withLock({ $0.linked[upstream]?.contains(entry.key.url) == true }) {
            take(.description(entry), of: upstream)
        }
        guard entry.response.head.fields.contains(.link) else { return }
        let links = APIDescription.links(in: entry.response.head, to: request)
        let new = state.withLock { state in
            links.filter { link in
                guard state.linked[upstream, default: []].count < Self.linkLimit else { return false }
                return state.linked[upstream, default: []].append(link).inserted
            }
        }
        // A client may have read it before.
        for link in new { Task { await readDescription(at: link, of: upstream, in: entry.key.partition) } }
    }

    /// Takes the stored copy of a description.
    /// - Returns: false if there is none.
    @discardableResult
    func readDescription(at url: String, of upstream: String, in partition: StoragePartition) async -> Bool {
        let found = await copies(url, partition).first { $0.key.url == url && $0.response.head.status == 200 }
        if let found { take(.description(found), of: upstream) }
        return found != nil
    }

    /// Takes an answered write.
    /// - Parameter partition: that of its identity; nil without a credential.
    func note(_ write: AnsweredWrite, plan: RoutePlan, partition: String?) {
        guard write.request.method == .post, (200...299).contains(write.answer.status), let upstream = learner(of: plan) else { return }
        // A body that was passed on without being read shows nothing.
        if write.answerBody == nil, MediaType.isJSON(write.answer.fields) { return }
        take(.create(write, owner: StoragePartition.own(partition).name, isNew: plan.entity?.resource == nil), of: upstream)
    }

    /// Takes the path of an answer of JSON that says it must not be stored.
    func noteUnstored(_ request: RequestHead, _ answer: ResponseHead, plan: RoutePlan) {
        guard request.method == .get, answer.status == 200, MediaType.isJSON(answer.fields), let upstream = learner(of: plan) else {
            return
        }
        take(.unstored(request.target), of: upstream)
    }

    /// True if the answer to a POST may show something, so that its body is worth having.
    func awaitsCreate(_ request: RequestHead, plan: RoutePlan) -> Bool {
        guard request.method == .post, let upstream = learner(of: plan) else { return false }
        return state.withLock { $0.learners[upstream]?.awaitsCreate(at: request.path) } == true
    }

    /// Takes a PUT that has left out members of its item.
    /// - Parameters:
    ///   - answer: the item as its answer shows it; nil if it does not. One without all that was left out may be a short form: then the next read
    ///     counts.
    ///   - tick: what was asked for later shows the state after the PUT.
    func note(_ put: PartialPut, answer: JSONValue?, at url: String, of upstream: String, partition: StoragePartition, tick: Tick) {
        let awaited = AwaitedPut(put: put, upstream: upstream, owner: partition.name, since: tick)
        if let answer, put.shown(by: answer)?.kept.isEmpty == false { return take(.put(awaited, answer), of: upstream) }
        state.withLock { state in
            if state.puts.count >= Self.waitingLimit { state.puts.removeFirst() }
            state.puts[url] = awaited
        }
    }

    /// Forgets PUTs to items that were written again: a read shows what came of both.
    func noteWrites(at urls: [String]) {
        state.withLock { state in
            guard !state.puts.isEmpty else { return }
            for url in urls { state.puts[url] = nil }
        }
    }

    private func noteAfterPut(_ entry: CacheEntry) {
        guard entry.key.method == "GET", entry.response.head.status == 200, entry.response.part == nil else { return }
        let awaited = state.withLock { state -> AwaitedPut? in
            guard let put = state.puts[entry.key.url], entry.response.asked > put.since,
                [put.owner, StoragePartition.shared.name].contains(entry.key.identity)
            else { return nil }
            state.puts[entry.key.url] = nil
            return put
        }
        if let awaited { take(.read(awaited, entry), of: awaited.upstream) }
    }

    private func learner(of plan: RoutePlan) -> String? {
        guard let upstream = plan.upstream, upstream.learnsResources, plan.route?.kind ?? .standard == .standard else { return nil }
        return upstream.name
    }

    private func take(_ seen: Seen, of upstream: String) {
        let begins = state.withLock { state in
            guard state.waiting.count < Self.waitingLimit else { return false }
            state.waiting.append((upstream, seen))
            guard !state.isRunning else { return false }
            state.isRunning = true
            return true
        }
        if begins { Task { await work() } }
    }

    /// Works until nothing waits.
    private func work() async {
        if !state.withLock({ $0.isRead }) { await takeUp() }
        while let next = next() {
            await note(next.seen, of: next.upstream)
            try? await Task.sleep(for: Self.pause)
        }
    }

    private func next() -> (upstream: String, seen: Seen)? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isRunning = false
                return nil
            }
            return state.waiting.removeFirst()
        }
    }

    private func note(_ seen: Seen, of upstream: String) async {
        switch seen {
        case .unstored(let target): state.withLock { _ = $0.learners[upstream, default: ResourceLearner()].noteUnstored(target) }
        case .description(let entry): await noteDescription(entry, of: upstream)
        case .put(let awaited, let body): await note(awaited, body)
        case .read(let awaited, let entry):
            guard let bytes = try? await content(entry, Self.bodyLimit), let body = try? JSONValue.parse(bytes) else { return }
            await note(awaited, body)
        case .create(let write, let owner, let isNew):
            guard let answer = SeenAnswer(write, owner: owner) else { return }
            await note(answer, of: upstream)
            // The first create of a resource makes it one: its answer is the form of the next.
            if isNew { await replies.note(write, plan: active.routes.plan(for: write.request)) }
        case .stored(let entry):
            // A failure of the store is reported where the entry is read.
            guard let bytes = try? await content(entry, Self.bodyLimit), let body = try? JSONValue.parse(bytes),
                let request = try? RequestHead(url: entry.key.url),
                let answer = SeenAnswer(
                    target: request.target, answer: entry.response.head, body: body, owner: entry.key.identity)
            else { return }
            await note(answer, of: upstream)
        }
    }

    private func note(_ awaited: AwaitedPut, _ body: JSONValue) async {
        guard let shown = awaited.put.shown(by: body),
            change(awaited.upstream, by: { $0.note(shown, at: awaited.put.label, owner: awaited.owner) })
        else { return }
        await keep(awaited.upstream)
    }

    private func noteDescription(_ entry: CacheEntry, of upstream: String) async {
        guard entry.response.bodyLength <= Int64(APIDescription.sizeLimit), let request = try? RequestHead(url: entry.key.url),
            let bytes = try? await content(entry, APIDescription.sizeLimit),
            let description = APIDescription(bytes, target: request.target, document: document)
        else { return }
        let owner = entry.key.identity
        guard state.withLock({ $0.learners[upstream]?.knows(description, owner: owner) }) != true else { return }
        logger.notice("\(upstream): its description at \(request.path) is evidence from now on")
        let changes = change(upstream) { $0.note(description, owner: owner) }
        await tell(changes, of: upstream, isKept: true)
        await readAgain(description.paths.map { request.origin.url + $0 }, in: entry.key.partition)
    }

    /// Takes the copies of lists once more, in which only a description that was read after them shows something.
    private func readAgain(_ urls: [String], in partition: StoragePartition) async {
        for url in urls {
            guard let list = await copies(url, partition).first, let request = try? RequestHead(url: list.key.url) else { continue }
            note(list, plan: active.routes.plan(for: request))
        }
    }

    private func note(_ answer: SeenAnswer, of upstream: String) async {
        let changes = change(upstream) { $0.note(answer) }
        await tell(changes, of: upstream, isKept: !changes.isEmpty)
    }

    /// Reports what is known now.
    /// - Parameter isKept: true if it is to be stored.
    private func tell(_ changes: [ResourceLearner.Change], of upstream: String, isKept: Bool) async {
        for change in changes {
            switch change {
            case .learned(let collection): logger.notice("\(upstream): \(collection) is known now; see: rockpool learned ls")
            case .extended: break
            case .withdrawn(let collection, let reason):
                logger.notice("\(upstream): \(collection) is not used as learned any more", metadata: ["reason": "\(reason)"])
            }
        }
        if isKept { await keep(upstream) }
    }

    /// Changes what is known of an upstream, and makes it part of the routes.
    private func change<Result: Sendable>(_ upstream: String, by change: (inout ResourceLearner) -> Result) -> Result {
        let (result, isNews) = state.withLock { state in
            let before = state.learners[upstream]?.shown ?? LearnedUpstream()
            let result = change(&state.learners[upstream, default: ResourceLearner()])
            let shown = state.learners[upstream]?.shown ?? LearnedUpstream()
            // Within the lock: nobody is told of what the routes do not have yet, and the later of two changes is the last.
            if shown != before { active.take(shown, of: upstream) }
            return (result, shown != before)
        }
        if isNews { onChange() }
        return result
    }

    /// Stores what is known of an upstream.
    private func keep(_ upstream: String) async {
        let learner = state.withLock { $0.learners[upstream] } ?? ResourceLearner()
        do {
            try await data.keep(learned: learner.isEmpty ? nil : learner.json, upstream: upstream)
        } catch {
            logger.failed("what was learned of an upstream could not be stored; it is known until the next start", error: error)
        }
    }

    // MARK: commands

    /// What is known of each upstream that learns, by its name.
    package func known() async -> [(upstream: String, learner: ResourceLearner)] {
        await takeUp()
        let learners = state.withLock { $0.learners }
        return active.configuration.upstreams.filter(\.learnsResources).map { ($0.name, learners[$0.name] ?? ResourceLearner()) }
    }

    /// Forgets what is known of one collection of an upstream, or of all of its collections.
    /// - Returns: the number of resources that were known.
    package func forget(_ collection: String?, of upstream: String) async -> Int {
        await takeUp()
        let count = change(upstream) { $0.forget(collection) }
        await keep(upstream)
        return count
    }

    /// Forgets what only one identity has shown.
    func forget(identity: String) async {
        await takeUp()
        let known = state.withLock { Array($0.learners.keys) }
        let changed = known.filter { upstream in change(upstream) { $0.forget(owner: identity) } }
        for upstream in changed { await keep(upstream) }
    }
}

// MARK: - Descriptions

/// Reads each description of an API that the operator has named: at the start, and again once its copy is stale
/// (docs/outbox.md#descriptions).
package final class DescriptionReader: Service {
    private static let tick = Duration.seconds(1)
    /// The pause between two looks at a copy, which is only fetched again if it is stale, and between two tries to get one.
    private static let pause = TimeSpan.hours(1)
    private static let retry = TimeSpan.minutes(10)

    private let active: ActiveConfiguration
    private let reachability: ReachabilityTable
    private let learning: ResourceLearning
    private let now: @Sendable () -> Timestamp
    /// Reads a URL as a client does.
    private let read: @Sendable (_ url: String) async -> Void
    private let due = Mutex<[String: Timestamp]>([:])

    init(
        active: ActiveConfiguration, reachability: ReachabilityTable, learning: ResourceLearning, now: @escaping @Sendable () -> Timestamp,
        read: @escaping @Sendable (_ url: String) async -> Void
    ) {
        (self.active, self.reachability, self.learning, self.now, self.read) = (active, reachability, learning, now, read)
    }

    package func run() async throws {
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                await self.readDue()
                try? await Task.sleep(for: Self.tick)
            }
        }
    }

    /// Reads the descriptions that are due.
    package func readDue() async {
        for upstream in active.configuration.upstreams where upstream.learnsResources && reachability.isUsable(upstream.name) {
            guard let url = upstream.learn.description.url(at: upstream.origin), isDue(url) else { continue }
            await read(url)
            let isKnown = await learning.readDescription(at: url, of: upstream.name, in: .shared)
            due.withLock { $0[url] = now() + (isKnown ? Self.pause : Self.retry) }
        }
    }

    private func isDue(_ url: String) -> Bool {
        let now = now()
        return due.withLock { $0[url].map { $0 <= now } ?? true }
    }
}
