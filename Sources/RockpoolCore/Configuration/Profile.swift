// Formats that many APIs share: what a resource of such an API is, unless its declaration says otherwise
// (docs/reference/configuration.md#profiles).

/// A format of APIs.
package enum Profile: String, CaseIterable, Sendable, Codable {
    /// JSON:API 1.1.
    case jsonapi
    /// JSON Hypertext Application Language (draft-kelly-json-hal).
    case hal
    /// HL7 FHIR, as JSON.
    case fhir
    /// OData 4.
    case odata
    /// PostgREST.
    case postgrest

    /// The media type of representations.
    package var mediaType: String {
        switch self {
        case .jsonapi: "application/vnd.api+json"
        case .hal: "application/hal+json"
        case .fhir: "application/fhir+json"
        case .odata, .postgrest: "application/json"
        }
    }

    /// Gives a resource, of which only the collection is known, what the format says.
    package func describe(_ resource: inout Resource) {
        resource.profile = self
        let path = resource.collection.hasSuffix("/") ? String(resource.collection.dropLast()) : resource.collection
        if !resource.isSingleton { resource.item = path + "/{id}" }
        switch self {
        case .jsonapi:
            resource.items = "/data"
            resource.envelope = "/data"
        case .hal:
            resource.items = "/_embedded/" + (path.split(separator: "/").last ?? "items")
        case .fhir:
            resource.items = "/entry"
            resource.element = "/resource"
            resource.version = "/meta/versionId"
            resource.updatedAt = "/meta/lastUpdated"
        case .odata:
            resource.items = "/value"
            resource.id = "/ID"
            if !resource.isSingleton { resource.item = path + "({id})" }
        case .postgrest:
            if !resource.isSingleton { resource.item = path + "?id=eq.{id}" }
        }
    }
}
