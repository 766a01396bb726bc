// Stores a response with its whole body at hand (RFC 9111 §3).
import NIOCore
import RockpoolCore
import RockpoolStore

extension ResponseStore {
    /// A response with the decision to store it.
    struct Copy: Sendable {
        let response: StoredResponse
        let key: CacheKey
        let category: CacheCategory
        let watch: EchoWatch?
    }

    /// Decides about a response to a read of which nothing is stored; nil if it is not stored, or if that takes more than the response.
    func copy(of head: ResponseHead, length: Int, sentAt: Moment, for context: RequestContext) -> Copy? {
        let (receivedAt, plan) = (now(), context.plan)
        // A portal's page is told from the upstream's by a probe after it.
        if portal.declared(plan) != nil, MediaType.isPage(head.fields) { return nil }
        guard portal.sign(of: head, to: context, stored: []) == nil, !portal.isDoubted(plan: plan),
            head.searchVariance(plan: plan).isDefault,
            case .store(let storage) = storability(of: head, for: context, among: [], receivedAt: receivedAt),
            !isOverriddenShare(storage, of: head, for: context)
        else { return nil }
        let category = category(of: head, plan)
        let key = storage.key(for: context.request)
        guard category.minUses <= 1, cache.isOpenForWrites, Int64(length) <= cache.largestBody(in: category, of: key.url) else {
            return nil
        }
        let response = response(with: head, plan: storage, category: category, sentAt: sentAt, receivedAt: receivedAt, for: context)
        let watch = EchoWatch(context.request, answeredBy: response.head)
        return Copy(response: response, key: key, category: category, watch: watch)
    }

    /// Stores `copy` with its body. False if the store has no room for it.
    func keep(_ body: ByteBuffer, as copy: Copy, by plan: RoutePlan) async -> Bool {
        let sentAt = copy.response.requestTime
        guard await portal.isConfirmed(plan: plan, since: sentAt - UpstreamClient.confirmedForCopies), !portal.isDoubted(plan: plan) else {
            return true
        }
        copy.watch?.read(body)
        let length = Int64(body.readableBytes)
        let writer = await cache.beginWrite(expectedLength: length, category: copy.category, for: copy.key)
        do {
            guard let writer, try await writer.append(body) else {
                cache.note(.notStored(lackOfRoom(for: length, in: copy.category, of: copy.key)), of: copy.key.url)
                return false
            }
            let groups = CacheGroups.all(in: copy.response.head.fields)
            let entry = try await cache.commit(
                writer, key: copy.key, response: varying(copy.response, by: copy.watch), groups: groups, mayLinger: true)
            learning.note(entry, plan: plan)
        } catch {
            logger.notStored(error)
        }
        return true
    }
}
