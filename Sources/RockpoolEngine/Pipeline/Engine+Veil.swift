// Credentials in what stored responses were selected by (SECURITY.md; `docs/security-model.md`).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension Engine {
    /// The fields as they are stored: each secret value replaced by its name under this installation's key.
    func veiled(_ fields: HTTPFields) -> HTTPFields { Vary.veiled(fields) { data.identityName($0.utf8) } }

    /// The request as it selects among stored responses.
    func selecting(_ request: RequestHead, among candidates: [StoredResponse]) -> RequestHead {
        guard Vary.isBySecret(candidates) else { return request }
        var selecting = request
        selecting.fields = veiled(request.fields)
        return selecting
    }

    /// What is to be done with the stored responses for this request (RFC 9111 §4).
    func reuse(_ candidates: [StoredResponse], for request: RequestHead, _ context: ReuseContext, now: Timestamp) -> Reuse {
        Reuse.decide(candidates: candidates, request: selecting(request, among: candidates), context: context, now: now)
    }
}
