// Stores a response whose whole body is at hand (RFC 9111 §3).
import NIOCore
import RockpoolCore
import RockpoolStore

extension ResponseStore {
    /// A response with the decision to store it.
    struct Copy: Sendable {
        let response: StoredResponse
        let key: CacheKey
        let category: CacheCategory
    }

    /// Decides about a response to a read of which nothing is stored; nil if it is not stored, or if that takes more than the response.
    func copy(of head: ResponseHead, length: Int, sentAt: Timestamp, for context: RequestContext) -> Copy? {
        let (receivedAt, plan) = (now(), context.plan)
        let isDeclared = plan.policy == .offlineFirst && plan.upstream != nil
        guard PortalSuspicion.judge(head, to: context.request, stored: [], isDeclared: isDeclared) == nil, !portal.isDoubted(plan: plan),
            head.searchVariance(plan: plan).isDefault,
            case .store(let storage) = storability(of: head, for: context, among: [], receivedAt: receivedAt)
        else { return nil }
        let category = plan.category ?? active.category(named: CategoryGuess.name(for: head)) ?? .ephemeral
        let key = storage.key(for: context.request)
        guard category.minUses <= 1, cache.isOpenForWrites, Int64(length) <= cache.largestBody(in: category, of: key.url) else {
            return nil
        }
        let response = response(with: head, plan: storage, category: category, sentAt: sentAt, receivedAt: receivedAt, for: context)
        return Copy(response: response, key: key, category: category)
    }

    /// Stores `copy` with its body. False if the store has no room for it.
    func keep(_ body: ByteBuffer, as copy: Copy, for context: RequestContext) async -> Bool {
        let length = Int64(body.readableBytes)
        let storing = storing(copy.response, length: length, for: context, under: copy.key, mayLinger: true) {}
        guard let writer = await cache.beginWrite(expectedLength: length, category: copy.category, for: copy.key) else { return false }
        do {
            guard try await writer.append(body) else {
                storing.givenUp(writer)
                return false
            }
            try await storing.whole(writer)
        } catch {
            logNotStored(error)
        }
        return true
    }

    /// Logs the failure of storing a response, unless another copy has come before it.
    private func logNotStored(_ error: any Error) {
        switch error {
        case is WholeIsStored, is OlderThanOwnWrite: break
        default: logger.failed("a response could not be stored", error: error)
        }
    }
}
