// The codings that requests ask for where their answers are read (RFC 9110 §12.5.3).
import HTTPTypes

extension RequestHead {
    /// Requests an answer without coding, because it is read (RFC 9110 §12.5.3). A signature of the request may cover the field.
    package mutating func acceptPlain() {
        if SignedRequest(self) == nil { fields[.acceptEncoding] = "identity" }
    }

    /// Requests an answer to a live write without coding where its body is read: by a rule of success, as the representation of an item, or
    /// for errors with status 200.
    package mutating func acceptReadable(_ plan: RoutePlan) {
        if plan.success?.needsBody == true || plan.entity?.resource != nil || plan.route?.kind == .graphql { acceptPlain() }
    }

    /// Requests a representation in a coding that can be decoded, so that queued writes can be folded into it: the client's other codings are
    /// left out. A signature of the request may cover the field.
    package mutating func acceptDecodable() {
        guard let value = fields[.acceptEncoding], SignedRequest(self) == nil else { return }
        let members = FieldList.members(of: value).filter { member in
            let name = member.prefix { $0 != ";" && $0 != " " }.lowercased()
            return name == "identity" || ContentCoding.decodable.contains(name)
        }
        fields[.acceptEncoding] = members.isEmpty ? "identity" : members.joined(separator: ", ")
    }
}
