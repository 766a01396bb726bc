// Hides credentials in the request fields that select stored responses (SECURITY.md; `docs/security-model.md`).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension ReadPipeline {
    /// Returns the fields as stored: each secret value is replaced by its HMAC under this installation's key.
    func veiled(_ fields: HTTPFields) -> HTTPFields { Vary.veiled(fields) { data.identityName($0.utf8) } }

    /// Returns the request as used for selection among the stored responses `candidates`.
    func selecting(_ request: RequestHead, among candidates: [StoredResponse]) -> RequestHead {
        guard Vary.isBySecret(candidates) else { return request }
        var selecting = request
        selecting.fields = veiled(request.fields)
        return selecting
    }

    /// Decides about the reuse of stored responses for this request (RFC 9111 §4).
    func reuse(_ candidates: [StoredResponse], for request: RequestHead, _ context: ReuseContext, now: Timestamp) -> Reuse {
        Reuse.decide(candidates: candidates, request: selecting(request, among: candidates), context: context, now: now)
    }
}
