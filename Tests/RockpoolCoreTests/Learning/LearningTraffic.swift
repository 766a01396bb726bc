// Traffic of an API, from which tests let a learner learn.
import HTTPTypes

@testable import RockpoolCore

/// One exchange.
struct Traffic: Sendable, CustomStringConvertible {
    var method: HTTPRequest.Method
    var target: String
    var status: Int
    var fields: HTTPFields
    var body: String
    var owner: String
    /// The body of the request.
    var sent: String?

    var description: String { "\(method.rawValue) \(target) \(status) \(body.prefix(60))" }

    static func get(_ target: String, _ body: String, _ fields: HTTPFields = [:], status: Int = 200, owner: String = "anna") -> Traffic {
        Traffic(method: .get, target: target, status: status, fields: fields, body: body, owner: owner)
    }

    static func post(_ target: String, _ body: String, _ fields: HTTPFields = [:], status: Int = 201, owner: String = "anna") -> Traffic {
        Traffic(method: .post, target: target, status: status, fields: fields, body: body, owner: owner)
    }

    /// A create that has sent this.
    func sending(_ text: String) -> Traffic {
        var traffic = self
        traffic.sent = text
        return traffic
    }

    static let origin = OriginAddress(scheme: .https, host: "api.example")

    /// What may be learned of it; nil if nothing may.
    var seen: SeenAnswer? {
        var head = ResponseHead(status: status, fields: fields)
        if head.fields[.contentType] == nil { head.fields[.contentType] = "application/json" }
        if method == .get {
            guard let value = try? JSONValue.parse(Array(body.utf8)) else { return nil }
            return SeenAnswer(target: target, answer: head, body: value, owner: owner)
        }
        let request = RequestHead(method: method, origin: Self.origin, target: target)
        return SeenAnswer(
            AnsweredWrite(request: request, body: sent.map { Array($0.utf8) }, answer: head, answerBody: Array(body.utf8)), owner: owner)
    }
}

extension ResourceLearner {
    /// What a learner knows after an API's traffic.
    init(_ traffic: [Traffic]) {
        self.init()
        for one in traffic { _ = note(one) }
    }

    mutating func note(_ traffic: Traffic) -> [Change] { traffic.seen.map { note($0) } ?? [] }

    /// The resources in the words of a configuration, without what is usual.
    var words: [String] {
        resources.map { resource in
            let parts: [String?] = [
                resource.collection, resource.item ?? "", resource.items.isEmpty ? nil : "items \(resource.items)",
                resource.element.isEmpty ? nil : "element \(resource.element)",
                resource.envelope.isEmpty ? nil : "envelope \(resource.envelope)",
                resource.content.isEmpty ? nil : "content \(resource.content)", resource.id == "/id" ? nil : "id \(resource.id)",
                resource.version == "etag" ? nil : "version \(resource.version)", resource.updatedAt.map { "updated \($0)" },
                resource.profile?.rawValue, resource.learned?.isCreating == true ? "creates" : nil,
            ]
            return parts.compactMap(\.self).joined(separator: " ")
        }
    }
}
