// Builds the input of folding from an operation: local ids are replaced by server ids where they are mapped (docs/outbox.md#reads,
// docs/outbox.md#local-ids).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension FoldedWrite {
    init(_ operation: QueuedWrite, action: String?, in data: DataStore) {
        let answer = operation.result.flatMap { result -> JSONValue? in
            guard operation.state == .delivered, [200, 201].contains(result.head.status), MediaType.isJSON(result.head.fields) else {
                return nil
            }
            return (try? JSONValue.parse(result.body)).flatMap { $0.object == nil ? nil : $0 }
        }
        self.init(
            operation.request, body: operation.body, sequence: operation.sequence, entityID: operation.entityID,
            isCreate: operation.localID != nil, action: action, answer: answer, isDelivered: operation.state == .delivered, in: data)
        isCollectionWide = operation.localID == nil && operation.entityID == nil
        madeAt = UUIDv7.moment(of: operation.id)
    }

    /// A write that is not stored yet and follows all stored ones.
    init(_ operation: QueuedWriteDraft, action: String?, in data: DataStore) {
        self.init(
            operation.request, body: operation.body, sequence: .max, entityID: operation.entityID, isCreate: operation.localID != nil,
            action: action, answer: nil, isDelivered: false, in: data)
        madeAt = UUIDv7.moment(of: operation.id)
    }

    private init(
        _ request: RequestHead, body: OperationBody, sequence: Int64, entityID: String?, isCreate: Bool, action: String?,
        answer: JSONValue?, isDelivered: Bool, in data: DataStore
    ) {
        let local = entityID.flatMap { LocalID($0) }.flatMap { isCreate || data.localIDs.knows($0) ? $0 : nil }
        let mapped = local.flatMap { data.localIDs.mapping(of: $0) }
        let stored = try? data.content(of: body).bytes()
        var bytes = stored ?? []
        if !data.localIDs.isEmpty, LocalIDScan.mayOccur(head: request, body: bytes) {
            bytes = (try? data.localIDs.substituted(request, bytes).body) ?? bytes
        }
        self.init(
            sequence: sequence, method: request.method, isItem: !isCreate, id: mapped?.id.text ?? entityID,
            idIsNumber: mapped?.id.isNumber ?? local?.isNumber ?? false, contentType: request.fields[.contentType], body: bytes,
            action: action, answer: answer, isDelivered: isDelivered)
        isUnreadable = stored == nil
    }
}
