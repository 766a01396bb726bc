// Asks the upstream for a place with and without a credential, before a name that the credential claims is believed
// (docs/security-model.md#proof; `CredentialComparison`).
import HTTPTypes
import NIOCore
import OrderedCollections
import RockpoolCore
import Synchronization

extension CredentialRenewal {
    /// How long an answer waits for the comparison of its credential. The comparison itself goes on.
    private static let patience = Duration.milliseconds(500)
    /// Longer bodies are not compared.
    private static let bodyLimit = Int.mib(1)

    /// Compares the answers to `request` with and without the credential of `identity`, and records the proof, if it is one.
    ///
    /// - Returns: once that is done, or after half a second.
    func compare(_ identity: Identity, of request: RequestHead, at upstream: Upstream) async {
        guard let credential = identity.credential, comparisons.begin(credential, now: now()) else { return }
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        Task {
            let ending = await ending(of: identity, request: request, at: upstream)
            if ending == .proved { await prove(identity, of: request, at: upstream) }
            if ending == .open { places.withLock { $0.noteOpen(request) } }
            comparisons.end(credential, ending, now: now())
            end.finish()
        }
        let timer = Task {
            try await Task.sleep(for: Self.patience)
            end.finish()
        }
        for await _ in ended {}
        timer.cancel()
    }

    /// - Returns: nil if the upstream could not be asked.
    private func ending(of identity: Identity, request: RequestHead, at upstream: Upstream) async -> CredentialComparison.Ending? {
        var comparison = CredentialComparison()
        var step = CredentialComparison.first
        while case .ask(let withCredential) = step {
            if case .no = reachability.permission(for: upstream.name, now: now()) { return nil }
            let question = CredentialComparison.question(like: request, withCredential: withCredential)
            do {
                let reply = try await upstreams.send(question, body: .none, upstream: upstream, forClient: false)
                let (bytes, isWhole) = try await reply.body.collect(upTo: Self.bodyLimit)
                step = comparison.take(.init(reply.head, digest: isWhole ? bytes.readableBytesView.hashValue : nil))
            } catch { return nil }
        }
        guard case .ended(let ending) = step else { return nil }
        return ending
    }
}

/// The comparisons under way, and how often those of a credential have shown nothing.
final class Comparisons: Sendable {
    /// At once, of all clients.
    private static let atOnceLimit = 8
    /// Of one credential that have shown nothing, within `forgottenAfter`.
    private static let tryLimit = 3
    private static let forgottenAfter = TimeSpan.minutes(10)
    private static let limit = 1000

    private struct State {
        var running: Set<String> = []
        var tries: OrderedDictionary<String, (count: Int, at: Timestamp)> = [:]
    }

    private let state = Mutex(State())

    /// - Returns: False if this credential is not compared now.
    func begin(_ credential: String, now: Timestamp) -> Bool {
        state.withLock { state in
            if let tries = state.tries[credential], tries.count >= Self.tryLimit, now - tries.at < Self.forgottenAfter { return false }
            guard state.running.count < Self.atOnceLimit else { return false }
            return state.running.insert(credential).inserted
        }
    }

    /// - Parameter ending: nil if the upstream could not be asked.
    func end(_ credential: String, _ ending: CredentialComparison.Ending?, now: Timestamp) {
        state.withLock { state in
            state.running.remove(credential)
            guard let ending else { return }
            let before = state.tries.removeValue(forKey: credential)
            if ending == .proved { return }
            if state.tries.count >= Self.limit { state.tries.removeFirst() }
            let isRecent = before.map { now - $0.at < Self.forgottenAfter } ?? false
            state.tries[credential] = ((isRecent ? before?.count ?? 0 : 0) + 1, now)
        }
    }
}
