// The media type of representations that are made here: that of the API's own (docs/outbox.md#media-types; RFC 9110 §8.3).
import HTTPTypes
import RockpoolCore
import RockpoolStore

extension ReadYourWrites {
    /// Returns the media type of the representations of a declared resource, as the client's copies have it: that of the item, else of another item
    /// or of a list of its collection. Where no copy shows one, that of the resource's profile, or `application/json`.
    func mediaType(for context: RequestContext) async -> String {
        var types: [String?] = [await storedItem(for: context)?.response.head.fields[.contentType]]
        let readable = StoragePartition.readable(by: context.identity.partition)
        if let path = context.plan.entity?.collection {
            for url in [path, path + "/"].map({ context.request.origin.url + $0 }) {
                let copies = (try? await cache.copies(ofPath: url, in: readable, limit: 4)) ?? []
                types += copies.filter { $0.response.head.status == 200 }.map { $0.response.head.fields[.contentType] }
            }
        }
        let known = types.compactMap(\.self).first { MediaType.isJSON([.contentType: $0]) }
        return known ?? context.plan.entity?.resource?.profile?.mediaType ?? "application/json"
    }
}
