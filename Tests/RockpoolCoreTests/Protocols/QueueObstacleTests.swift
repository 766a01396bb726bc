// docs/outbox.md#never-queued: the writes that wait only where a route says so.
import HTTPTypes
import RockpoolCore
import Testing

@Suite struct QueueObstacleTests {
    private func request(_ method: String, _ target: String, _ fields: HTTPFields = [:]) -> RequestHead {
        RequestHead(
            method: HTTPRequest.Method(method) ?? .post, origin: OriginAddress(scheme: .http, host: "api.example"), target: target,
            fields: fields)
    }

    @Test(arguments: [
        ("application/grpc", QueueObstacle.grpc), ("application/grpc+proto; x=1", .grpc), ("application/grpc-web", .grpc),
        ("application/mercurial-0.1", .rpc),
        ("application/x-git-upload-pack-request", .git), ("application/x-git-receive-pack-request", .git),
        ("application/vnd.git-lfs+json", .git), ("application/soap+xml", .soap), ("application/json-rpc", .jsonRPC),
        ("application/graphql", .graphQL), ("application/x-amz-json-1.1", .rpc), ("application/dns-message", .rpc),
    ])
    func byMediaType(type: String, obstacle: QueueObstacle) {
        #expect(QueueObstacle.of(request("POST", "/x", [.contentType: type])) == obstacle)
    }

    @Test(arguments: [
        ("POST", "/repo.git/git-receive-pack", QueueObstacle.git), ("POST", "/repo.git/git-upload-pack?x=1", .git),
        ("POST", "/bucket/key?uploads", .upload), ("PUT", "/bucket/key?partNumber=1&uploadId=a", .upload),
        ("DELETE", "/bucket/key?uploadId=a", .upload), ("POST", "/v2/image/blobs/uploads/", .upload),
        ("POST", "/upload?uploadType=resumable", .upload), ("POST", "/bucket?delete", .rpc),
        ("POST", "/-/npm/v1/security/advisories/bulk", .rpc), ("POST", "/index/_search?size=1", .rpc), ("POST", "/odata/$batch", .rpc),
        ("POST", "/v1/chat/completions", .rpc), ("POST", "/v1/projects/a/documents:runQuery", .rpc), ("POST", "/db/_revs_diff", .rpc),
        ("LOCK", "/file", .lock),
        ("UNLOCK", "/file", .lock), ("POST", "/token/", .login), ("POST", "/oauth2/token?x=y", .login), ("POST", "/api/Login", .login),
    ])
    func byTarget(method: String, target: String, obstacle: QueueObstacle) {
        #expect(QueueObstacle.of(request(method, target)) == obstacle)
    }

    @Test(arguments: [
        ("SOAPAction", QueueObstacle.soap), ("X-Amz-Target", .rpc), ("Connect-Protocol-Version", .rpc), ("Tus-Resumable", .upload),
    ])
    func byField(name: String, obstacle: QueueObstacle) throws {
        let name = try #require(HTTPField.Name(name))
        #expect(QueueObstacle.of(request("POST", "/x", [name: "1"])) == obstacle)
    }

    /// Ordinary REST waits as ever.
    @Test(arguments: [
        ("POST", "/v1/notes", "application/json", #"{"title": "x", "query": "shells", "tokens": 3}"#),
        ("PUT", "/v1/notes/1", "application/vnd.api+json", #"{"data": {"attributes": {"title": "x"}}}"#),
        ("PATCH", "/v1/notes/1", "application/merge-patch+json", #"{"passwordProtected": true}"#),
        ("POST", "/form", "application/x-www-form-urlencoded", "title=x&password="),
        ("POST", "/v1/tokens", "application/json", #"{"push": "abc"}"#),
        ("PUT", "/dav/a.ics", "text/calendar", "BEGIN:VCALENDAR"), ("PUT", "/a.png", "image/png", "x"),
        ("PUT", "/a", "application/octet-stream", "jsonrpc"), ("POST", "/x", "text/xml", "<note/>"),
        ("POST", "/x", "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--b--"),
        ("POST", "/v1/searches", "application/json", #"{"methodCalls": 3}"#), ("POST", "/habits/3/completions", "application/json", "{}"),
        ("DELETE", "/v1/notes/1", "", ""), ("POST", "/x", "application/json", "[1, 2]"),
    ])
    func ordinaryWritesWait(method: String, target: String, type: String, body: String) {
        let head = request(method, target, type.isEmpty ? [:] : [.contentType: type])
        #expect(QueueObstacle.of(head) == nil)
        #expect(QueueObstacle.of(head, body: Array(body.utf8)) == nil)
    }

    @Test(arguments: [
        ("application/json", #"{"jsonrpc": "2.0", "method": "add", "id": 1}"#, QueueObstacle.jsonRPC),
        ("application/json", #"[{"jsonrpc": "2.0", "method": "add"}]"#, .jsonRPC),
        ("application/json", #"{"query": "mutation { add(n: 1) }"}"#, .graphQL),
        ("application/json", #"{"using": ["urn:ietf:params:jmap:mail"], "methodCalls": []}"#, .jsonRPC),
        ("application/json", #"{"query": "{ me { name } }"}"#, .graphQL),
        ("application/json", #"{"username": "a", "password": "b"}"#, .login),
        ("application/json", #"{"user": {"email": "a", "currentPassword": "b"}}"#, .login),
        ("application/json", #"{"grant_type": "refresh_token"}"#, .login), ("", #"{"password": "b"}"#, .login),
        ("application/x-www-form-urlencoded", "username=a&password=b", .login),
        ("application/x-www-form-urlencoded", "user%5Bpassword%5D=b", .login),
        ("application/x-www-form-urlencoded", "grant_type=password&username=a", .login),
        ("application/x-www-form-urlencoded", "a=b&password1=x", .login),
        ("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nx", .login),
        ("text/xml", "<?xml version=\"1.0\"?><methodCall><methodName>x</methodName></methodCall>", .xmlRPC),
        ("text/xml", "<soap:Envelope xmlns:soap=\"x\"/>", .soap),
    ])
    func byBody(type: String, body: String, obstacle: QueueObstacle) {
        let head = request("POST", "/x", type.isEmpty ? [:] : [.contentType: type])
        #expect(QueueObstacle.of(head, body: Array(body.utf8)) == obstacle)
    }

    /// A form that another site's page sends is refused; an application's own request by CORS is not.
    @Test func formsOfOtherSites() throws {
        let (site, mode) = (try #require(HTTPField.Name("Sec-Fetch-Site")), try #require(HTTPField.Name("Sec-Fetch-Mode")))
        let form: HTTPFields = [.contentType: "application/x-www-form-urlencoded"]
        let sent = { (more: HTTPFields) in
            var fields = form
            for field in more { fields.append(field) }
            return QueueObstacle.of(self.request("POST", "/form", fields))
        }
        #expect(sent([site: "cross-site", mode: "navigate"]) == .crossSite)
        #expect(sent([site: "cross-site", mode: "cors"]) == nil)
        #expect(sent([site: "same-origin", mode: "navigate"]) == nil)
        #expect(sent([.origin: "https://evil.example", .accept: "text/html"]) == .crossSite)
        #expect(sent([.origin: "http://api.example", .accept: "text/html"]) == nil)
        #expect(sent([:]) == nil)
    }

    @Test func theRemedyIsALineOfTheConfiguration() {
        #expect(QueueObstacle.login.remedy(for: request("POST", "/token?x=1")) == #"{ match: "POST /token", queue: always }"#)
        #expect(QueueObstacle.graphQL.remedy(for: request("POST", "/graphql")) == #"{ match: "POST /graphql", kind: graphql }"#)
    }
}
