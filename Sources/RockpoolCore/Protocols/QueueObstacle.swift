// Writes whose protocol has no place for a 202: they wait only where a route says so (docs/outbox.md#never-queued).
import HTTPTypes

/// The reason why a write is not queued by default: its client would take a 202 for something else, or its secret must not be stored.
package enum QueueObstacle: String, CaseIterable, Sendable {
    case git, grpc, soap, rpc
    case xmlRPC = "xml-rpc"
    case jsonRPC = "json-rpc"
    case graphQL = "graphql"
    case lock, upload, login
    case crossSite = "cross-site"

    /// The kind of request, as a noun for a sentence.
    package var words: String {
        switch self {
        case .git: "a git exchange"
        case .grpc: "a gRPC call"
        case .soap: "a SOAP call"
        case .rpc: "a remote procedure call"
        case .xmlRPC: "an XML-RPC call"
        case .jsonRPC: "a JSON-RPC call"
        case .graphQL: "a GraphQL request on a route that is not declared"
        case .lock: "a WebDAV lock"
        case .upload: "a step of an upload in several requests"
        case .login: "a request with a password or a grant"
        case .crossSite: "a form of another site"
        }
    }

    /// The line of `routes` that permits this request to wait; a GraphQL endpoint is declared by its kind.
    package func remedy(for request: RequestHead) -> String {
        let match = "match: \"\(request.method.rawValue) \(request.path)\""
        return self == .graphQL ? "{ \(match), kind: graphql }" : "{ \(match), queue: always }"
    }

    /// The obstacle that the head of a write shows; nil without one.
    package static func of(_ request: RequestHead) -> QueueObstacle? {
        if ["LOCK", "UNLOCK"].contains(request.method.rawValue) { return .lock }
        let type = MediaType.essence(of: request.fields) ?? ""
        return byType(type) ?? byFields(request.fields) ?? byTarget(request) ?? (isForeignForm(request, type) ? .crossSite : nil)
    }

    private static func byType(_ type: String) -> QueueObstacle? {
        if type.hasPrefix("application/grpc") { return .grpc }
        if type.hasPrefix("application/mercurial-") || type.hasPrefix("application/x-fossil") || type == "application/vnd.svn-skel" {
            return .rpc
        }
        if type.hasPrefix("application/x-git-") || type == "application/vnd.git-lfs+json" { return .git }
        if type.hasPrefix("application/x-amz-json") || type.hasPrefix("application/connect+")
            || type.hasPrefix("application/vnd.elasticsearch+")
        {
            return .rpc
        }
        return types[type]
    }

    /// Types of requests that ask for an answer of a type of their own.
    private static let types: [String: QueueObstacle] = [
        "application/soap+xml": .soap, "application/json-rpc": .jsonRPC, "application/jsonrpc": .jsonRPC,
        "application/jsonrequest": .jsonRPC, "application/graphql": .graphQL, "application/graphql+json": .graphQL,
        "application/dns-message": .rpc, "application/ocsp-request": .rpc, "application/timestamp-query": .rpc,
        "application/sparql-query": .rpc, "application/sparql-update": .rpc, "multipart/mixed": .rpc,
        "application/x-thrift": .rpc, "application/x-hessian": .rpc, "application/x-amf": .rpc,
    ]

    private static func byFields(_ fields: HTTPFields) -> QueueObstacle? {
        for field in fields {
            switch field.name.canonicalName {
            case "soapaction": return .soap
            case "x-amz-target", "connect-protocol-version", "twirp-version": return .rpc
            case "x-http-method-override" where ["GET", "HEAD"].contains(field.value.uppercased()): return .rpc
            case "tus-resumable", "upload-complete", "upload-draft-interop-version", "x-goog-upload-protocol": return .upload
            default: continue
            }
        }
        return nil
    }

    private static func byTarget(_ request: RequestHead) -> QueueObstacle? {
        let path = request.path
        if path.hasSuffix("/git-upload-pack") || path.hasSuffix("/git-receive-pack") { return .git }
        let parameters = request.target.dropFirst(path.count + 1).split(separator: "&")
        if Array(path.utf8).holds("/blobs/uploads/") || parameters.contains(where: isUploadStep) { return .upload }
        // S3 deletes several objects by one POST, and lists in its answer what was deleted.
        if request.method == .post, parameters.contains("delete") { return .rpc }
        let last = path.split(separator: "/").last.map { $0.lowercased() } ?? ""
        if loginSegments.contains(last) { return .login }
        return request.method == .post && Question.isOne(path, last: last) ? .rpc : nil
    }

    /// True for S3's multipart protocol and Google's resumable one, whose steps need the answer of the step before.
    private static func isUploadStep(_ parameter: Substring) -> Bool {
        parameter == "uploads" || parameter == "uploadType=resumable"
            || ["uploads=", "uploadId=", "upload_id="].contains { parameter.hasPrefix($0) }
    }

    /// Last segments of token endpoints and logins.
    private static let loginSegments: Set<String> = [
        "token", "login", "log-in", "log_in", "signin", "sign-in", "sign_in", "token.json", "login.json",
    ]

    /// True for a form that a page of another site sends: the browser announces it, or names the page's origin.
    private static func isForeignForm(_ request: RequestHead, _ type: String) -> Bool {
        guard ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"].contains(type) else { return false }
        if let site = request.fields.value(of: "sec-fetch-site") {
            return site == "cross-site" && request.fields.value(of: "sec-fetch-mode") != "cors"
        }
        guard let origin = request.fields[.origin], MediaType.isAskedForPages(request) else { return false }
        return origin != request.origin.url
    }
}
