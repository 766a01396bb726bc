// docs/outbox.md#never-queued: a write waits by what its body is.
import HTTPTypes
import RockpoolCore
import Testing

private func request(_ method: String, _ target: String, _ fields: HTTPFields = [:]) -> RequestHead {
    RequestHead(
        method: HTTPRequest.Method(method) ?? .post, origin: OriginAddress(scheme: .http, host: "api.example"), target: target,
        fields: fields)
}

/// The rule by media type: real types of several ecosystems.
@Suite struct WaitingTypeTests {
    @Test(arguments: [
        // Documents of APIs: JSON:API, HAL, FHIR, OData, JSON-LD, GeoJSON, SCIM, SenML, ActivityStreams, CloudEvents, Kafka REST, OTLP.
        "application/json", "application/json; charset=utf-8", "Application/JSON;odata=verbose", "application/vnd.api+json",
        "application/hal+json", "application/fhir+json; fhirVersion=4.0", "application/ld+json", "application/geo+json",
        "application/scim+json", "application/senml+json", "application/activity+json", "application/cloudevents+json",
        "application/vnd.kafka.json.v2+json", "application/problem+json", "application/vnd.github+json", "application/reports+json",
        "application/vnd.collection+json", "application/x-json", "application/x-ndjson", "application/jsonl", "application/json-seq",
        "text/json",
        // Forms.
        "application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=Shift_JIS",
        "multipart/form-data; boundary=----WebKitFormBoundary", "multipart/related; boundary=x",
        "multipart/related; type=\"application/json\"; boundary=x",
        // Patches.
        "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
        "application/apply-patch+yaml", "application/xml-patch+xml", "application/vnd.contoso.patch",
        // Texts: line protocol, CSV, calendars, cards, Markdown, Turtle.
        "text/plain", "text/plain; version=0.0.4", "text/csv", "text/calendar; charset=utf-8", "text/vcard", "text/markdown",
        "text/html", "text/xml", "text/turtle", "text/n3", "text/yaml",
        // Media.
        "image/jpeg", "image/heic", "image/svg+xml", "audio/ogg", "video/mp4", "font/woff2", "model/gltf-binary", "message/rfc822",
        // None, and texts that are no types.
        "", "json", "*",
    ])
    func postsOfDocumentsFormsTextsAndMediaWait(type: String) {
        let fields: HTTPFields = type.isEmpty ? [:] : [.contentType: type]
        for method in ["POST", "PATCH", "PUT"] { #expect(QueueObstacle.of(request(method, "/x", fields)) == nil, "\(method)") }
    }

    @Test(arguments: [
        // Printing (CUPS), certificates (SCEP, EST, CMP, OCSP, time stamps), mail (ActiveSync, MAPI over HTTP).
        "application/ipp", "application/x-pki-message", "application/pkcs10", "application/pkcs7-mime", "application/pkixcmp",
        "application/ocsp-request", "application/timestamp-query", "application/vnd.ms-sync.wbxml", "application/vnd.ms-sync",
        "application/mapi-http",
        // Telemetry: Prometheus remote write and read, OTLP, Fluent, Sentry, pprof.
        "application/x-protobuf", "application/x-protobuf;proto=io.prometheus.write.v2.Request", "application/protobuf",
        "application/msgpack", "application/x-sentry-envelope", "application/octet-stream",
        // Repositories: svn, Fossil, Mercurial, git.
        "application/vnd.svn-svndiff", "application/vnd.svn-skel", "application/x-fossil", "application/mercurial-0.1",
        "application/x-git-receive-pack-request",
        // Calls: OGC, SOAP, AWS, DNS, SPARQL, Thrift, Hessian, AMF, XML-RPC, JSON-RPC, CBOR.
        "application/xml", "application/xml; charset=utf-8", "application/ogc+xml", "application/vnd.ogc.wfs+xml", "application/gml+xml",
        "application/soap+xml; action=x", "application/x-amz-json-1.1", "application/dns-message", "application/sparql-query",
        "application/sparql-update", "application/x-thrift", "application/vnd.apache.thrift.binary", "application/x-hessian",
        "application/x-amf", "application/json-rpc", "application/jsonrequest", "application/cbor", "application/atom+xml",
        "application/csp-report", "application/yaml", "application/sql", "application/sdp", "application/x-www-form-urlencoded-v2",
        "application/dispatch",
        // Several parts: batches, AS2, MTOM, whatever their root is.
        "multipart/mixed; boundary=batch", "multipart/signed; protocol=\"application/pkcs7-signature\"", "multipart/report",
        "multipart/related; type=\"application/xop+xml\"; boundary=x", "multipart/related; boundary=x; TYPE=application/dicom",
    ])
    func postsOfOtherTypesAreRefusedButStoredByPUT(type: String) {
        let fields: HTTPFields = [.contentType: type]
        for method in ["POST", "PATCH"] { #expect(QueueObstacle.of(request(method, "/x", fields)) == .type, "\(method)") }
        #expect(QueueObstacle.of(request("PUT", "/x", fields)) == nil)
        #expect(QueueObstacle.of(request("MKCOL", "/x", fields)) == nil)
    }

    /// A type names a call also where it is a kind of JSON or a text, and whatever the method.
    @Test(arguments: [
        "application/jose+json", "application/vnd.git-lfs+json", "application/vnd.elasticsearch+json; compatible-with=8",
        "application/grpc", "application/grpc+proto; x=1", "application/grpc-web+json", "application/connect+json",
        "text/x-gwt-rpc; charset=utf-8", "message/ohttp-req",
    ])
    func callsAreRefusedWhateverTheirForm(type: String) {
        for method in ["POST", "PUT"] { #expect(QueueObstacle.of(request(method, "/x", [.contentType: type])) == .type, "\(method)") }
    }

    @Test(arguments: [
        "application/pdf", "application/zip", "application/gzip", "application/x-tar", "application/epub+zip", "application/wasm",
        "application/vnd.oasis.opendocument.text", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.oci.image.manifest.v1+json", "application/x-sqlite3", "application/java-archive",
        "application/vnd.android.package-archive",
        "binary/octet-stream", "application/calendar+xml",
    ])
    func filesAreStoredByPUT(type: String) { #expect(QueueObstacle.of(request("PUT", "/files/a", [.contentType: type])) == nil) }

    @Test func graphQLHasAKindOfItsOwn() {
        #expect(QueueObstacle.of(request("POST", "/x", [.contentType: "application/graphql"])) == .graphQL)
        #expect(QueueObstacle.of(request("POST", "/x", [.contentType: "application/graphql+json"])) == .graphQL)
    }
}

@Suite struct QueueObstacleTests {
    @Test(arguments: [
        ("POST", "/bucket/key?uploads", QueueObstacle.upload), ("PUT", "/bucket/key?partNumber=1&uploadId=a", .upload),
        ("DELETE", "/bucket/key?uploadId=a", .upload), ("POST", "/v2/image/blobs/uploads/", .upload),
        ("POST", "/upload?uploadType=resumable", .upload), ("POST", "/bucket?delete", .call), ("POST", "/index/_bulk", .call),
        ("POST", "/db/_bulk_docs", .call),
        ("POST", "/odata/$batch", .call), ("POST", "/index/_delete_by_query", .call),
        ("LOCK", "/file", .lock), ("UNLOCK", "/file", .lock),
        ("POST", "/token/", .login), ("POST", "/oauth2/token?x=y", .login), ("POST", "/api/Login", .login),
    ])
    func byTarget(method: String, target: String, obstacle: QueueObstacle) {
        #expect(QueueObstacle.of(request(method, target)) == obstacle)
    }

    /// Prometheus, Loki, Tempo, Grafana, etcd, Elasticsearch, CouchDB, OData, Algolia, Notion, HubSpot, Qdrant, Telegram, Slack, Google.
    @Test(arguments: [
        "/api/v1/query", "/api/v1/query_range", "/api/v1/query_exemplars", "/loki/api/v1/query_range?limit=1", "/api/ds/query",
        "/v3/kv/range",
        "/api/v2/query?org=a", "/index/_search?size=1", "/_search/scroll", "/_msearch/template", "/index/_validate/query", "/db/_find",
        "/db/_revs_diff", "/Patient/_search", "/1/indexes/a/query", "/v1/search/",
        "/crm/v3/objects/contacts/search", "/collections/a/points/query", "/multi-search", "/bot1:x/getUpdates", "/api/users.list",
        "/api/conversations.search", "/2/files/get_metadata", "/v1/projects/a/documents:runQuery", "/v1/chat/completions", "/Search",
        "/-/npm/v1/security/advisories/bulk", "/embeddings",
        // The format makes no difference.
        "/search.json", "/issues/search.xml?q=a", "/index/_search.json", "/Search.JSON", "/search.html?x", "/v1/notes:search.json",
    ])
    func pathsThatAsk(target: String) {
        #expect(QueueObstacle.of(request("POST", target)) == .question)
        // What is stored under such a name is no question.
        #expect(QueueObstacle.of(request("PUT", target)) == nil)
    }

    /// Names that resemble those of questions.
    @Test(arguments: [
        "/v1/queries", "/searches", "/research", "/jquery", "/ranges", "/getaways", "/lists", "/list", "/v1/search/saved",
        "/query-templates",
        "/habits/3/completions", "/orders/find-a-place", "/targets", "/write?db=x&precision=s", "/api/v1/admin/tsdb/snapshot",
        "/api/v1/write", "/items?query=shells", "/items?q=drop", "/items?cmd=delete&id=3", "/widget", "/search.1", "/research.json",
        "/search/notes.json",
    ])
    func otherPathsWait(target: String) { #expect(QueueObstacle.of(request("POST", target)) == nil) }

    @Test(arguments: [
        ("SOAPAction", QueueObstacle.call), ("X-Amz-Target", .call), ("Connect-Protocol-Version", .call), ("Tus-Resumable", .upload),
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
        ("POST", "/write?db=x", "text/plain", "cpu,host=a value=1 1700000000"), ("POST", "/write?db=x", "", "cpu value=1"),
        ("POST", "/pay", "application/json", #"{"method": "card", "amount": 3, "id": 7}"#),
        ("POST", "/x", "application/json", #"{"method": "torrent-add", "arguments": {}}"#),
        ("POST", "/x", "application/json", #"{"statement": "Deleted as agreed", "command": "start"}"#),
        ("POST", "/api.php", "application/x-www-form-urlencoded", "action=edit&title=A&text=select+a+colour"),
        ("POST", "/form", "application/x-www-form-urlencoded", "q=update&cmd=delete&id=3"),
        ("POST", "/orders", "application/json", #"{"command": "update firmware"}"#),
        ("POST", "/texts", "application/json", #"{"statement": "Delete is a strong word"}"#),
        ("POST", "/texts", "application/json", #"{"statement": "Create a better tide table"}"#),
        ("POST", "/texts", "application/x-www-form-urlencoded", "query=&statement=drop+the+old+nets"),
        ("POST", "/form", "application/x-www-form-urlencoded", "query=&name=x"),
        // What is stored by PUT may have any form.
        ("PUT", "/a.xml", "text/xml", "<soap:Envelope/>"), ("PUT", "/a.json", "application/json", #"{"jsonrpc": "2.0", "method": "get"}"#),
        ("PUT", "/a.json", "application/json", #"{"query": "{ me { name } }"}"#),
    ])
    func ordinaryWritesWait(method: String, target: String, type: String, body: String) {
        let head = request(method, target, type.isEmpty ? [:] : [.contentType: type])
        #expect(QueueObstacle.of(head) == nil)
        #expect(QueueObstacle.of(head, body: Array(body.utf8)) == nil)
    }

    @Test(arguments: [
        ("application/json", #"{"jsonrpc": "2.0", "method": "add", "id": 1}"#, QueueObstacle.call),
        ("application/json", #"[{"jsonrpc": "2.0", "method": "add"}]"#, .call),
        ("application/json", #"{"method": "core.add_torrent_url", "params": ["x"], "id": 1}"#, .call),
        ("text/plain", #"{"jsonrpc": "1.0", "id": "curltest", "method": "getblockcount", "params": []}"#, .call),
        ("application/json", #"{"query": "mutation { add(n: 1) }"}"#, .graphQL),
        ("application/json", #"{"using": ["urn:ietf:params:jmap:mail"], "methodCalls": []}"#, .call),
        ("application/json", #"{"query": "{ me { name } }"}"#, .graphQL),
        ("application/json", #"{"username": "a", "password": "b"}"#, .login),
        ("application/json", #"{"user": {"email": "a", "currentPassword": "b"}}"#, .login),
        ("application/json", #"{"grant_type": "refresh_token"}"#, .login), ("", #"{"password": "b"}"#, .login),
        ("text/plain;charset=UTF-8", #"{"password": "b"}"#, .login), ("application/x-www-form-urlencoded", #"{"password": "b"}"#, .login),
        ("application/x-www-form-urlencoded", "username=a&password=b", .login),
        ("application/x-www-form-urlencoded", "user%5Bpassword%5D=b", .login),
        ("application/x-www-form-urlencoded", "grant_type=password&username=a", .login),
        ("application/x-www-form-urlencoded", "a=b&password1=x", .login),
        ("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nx", .login),
        ("text/xml", "<?xml version=\"1.0\"?><methodCall><methodName>x</methodName></methodCall>", .call),
        ("text/xml", "<soap:Envelope xmlns:soap=\"x\"/>", .call),
    ])
    func byBody(type: String, body: String, obstacle: QueueObstacle) {
        let head = request("POST", "/x", type.isEmpty ? [:] : [.contentType: type])
        #expect(QueueObstacle.of(head, body: Array(body.utf8)) == obstacle)
    }

    /// MediaWiki, Transmission, Prometheus, SPARQL, InfluxDB, Flickr, AWS, Slack-like and SQL gateways ask by their bodies.
    @Test(arguments: [
        ("application/x-www-form-urlencoded", "action=query&titles=A&format=json", QueueObstacle.question),
        ("application/x-www-form-urlencoded", "format=json&action=QUERY", .question),
        ("multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"action\"\r\n\r\nquery\r\n--b--", .question),
        ("application/x-www-form-urlencoded", "query=up&time=1700000000", .question),
        ("application/x-www-form-urlencoded", "query=SELECT+%3Fs+WHERE+%7B%7D", .question),
        ("application/x-www-form-urlencoded", "q=SHOW+DATABASES", .question),
        ("application/x-www-form-urlencoded", "db=x&q=select+1", .question),
        ("application/x-www-form-urlencoded", "method=flickr.photos.search&tags=x", .question),
        ("application/x-www-form-urlencoded", "Action=DescribeInstances&Version=2016-11-15", .question),
        ("application/json", #"{"method": "session-get"}"#, .question),
        ("application/json", #"{"method":"torrent-get","arguments":{}}"#, .question),
        ("application/json", #"{"method": "users.list"}"#, .question), ("", #"{"method": "getStatus"}"#, .question),
        ("application/json", #"{"sql": "SELECT * FROM t"}"#, .question),
        ("application/json", #"{"statement": " -- c\n show tables"}"#, .question),
        ("application/json", #"{"q": "SHOW FIELD KEYS"}"#, .question),
        ("application/json", #"{"q": "SHOW RETENTION POLICIES"}"#, .question),
        ("application/json", #"{"sql": "select count(*)"}"#, .question), ("application/json", #"{"sql": "EXPLAIN SELECT 1"}"#, .question),
        ("application/json", #"{"sql": "describe boats"}"#, .question),
        ("application/x-www-form-urlencoded", "q=DROP+DATABASE+pool", .statement),
        ("application/x-www-form-urlencoded", "db=x&q=%20drop%20series%20from%20cpu", .statement),
        ("application/x-www-form-urlencoded", "query=DELETE+FROM+t", .statement),
        ("application/x-www-form-urlencoded", "query=SELECT+1%3B+DROP+TABLE+t", .statement),
        ("application/x-www-form-urlencoded", "sql=%2F*x*%2F+alter+table+t", .statement),
        ("application/x-www-form-urlencoded", "q=SELECT+*+INTO+b+FROM+a", .statement),
        (
            "multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\nCREATE DATABASE x\r\n--b--",
            .statement
        ),
        ("application/json", #"{"stmt": "TRUNCATE TABLE t"}"#, .statement),
        ("application/json", #"{"sql": "UPDATE t SET a = 1"}"#, .statement),
        ("application/x-www-form-urlencoded", "sql=INSERT+INTO+t+VALUES+(1)", .insertion),
        ("application/x-www-form-urlencoded", "q=TRUNCATE+a", .statement), ("application/x-www-form-urlencoded", "q=drop+x", .statement),
        ("application/x-www-form-urlencoded", "q=MERGE+INTO+a+USING+b", .statement),
        ("application/x-www-form-urlencoded", "q=WITH+a+AS+(SELECT+1)+SELECT+2", .question),
    ])
    func questionsAndStatementsByBody(type: String, body: String, obstacle: QueueObstacle) {
        let head = request("POST", "/x", type.isEmpty ? [:] : [.contentType: type])
        #expect(QueueObstacle.of(head, body: Array(body.utf8)) == obstacle)
    }

    @Test(arguments: [
        ("POST", "/query?db=x&q=DROP+DATABASE+pool", QueueObstacle.statement), ("POST", "/query?q=SHOW%20DATABASES", .question),
        ("POST", "/?query=SELECT%201", .question), ("POST", "/?query=INSERT+INTO+t+FORMAT+CSV", .insertion),
        ("POST", "/api.php?action=query&titles=A", .question), ("DELETE", "/db?q=DELETE%20FROM%20t", .statement),
        ("PUT", "/db?sql=%28DROP%20TABLE%20t", .statement),
    ])
    func questionsAndStatementsByTarget(method: String, target: String, obstacle: QueueObstacle) {
        #expect(QueueObstacle.of(request(method, target)) == obstacle)
        #expect(obstacle.isFinal == (obstacle == .statement))
    }

    /// Sentences that begin with a verb of SQL are what people write.
    @Test(arguments: [
        ("application/json", #"{"command": "Show me around"}"#), ("application/json", #"{"q": "Select a colour"}"#),
        ("application/json", #"{"statement": "Describe the boat to me"}"#), ("application/json", #"{"cmd": "explain yourself"}"#),
        ("application/x-www-form-urlencoded", "q=Show+boats"), ("application/json", #"{"command": "Update my list"}"#),
        ("application/json", #"{"command": "delete the old tide table"}"#),
    ])
    func sentencesAreWrites(type: String, body: String) {
        #expect(QueueObstacle.of(request("POST", "/x", [.contentType: type]), body: Array(body.utf8)) == nil)
    }

    /// A form that another site's page sends is refused; an application's own request by CORS is not.
    @Test func formsOfOtherSites() throws {
        let (site, mode) = (try #require(HTTPField.Name("Sec-Fetch-Site")), try #require(HTTPField.Name("Sec-Fetch-Mode")))
        let form: HTTPFields = [.contentType: "application/x-www-form-urlencoded"]
        let sent = { (more: HTTPFields) in
            var fields = form
            for field in more { fields.append(field) }
            return QueueObstacle.of(request("POST", "/form", fields))
        }
        #expect(sent([site: "cross-site", mode: "navigate"]) == .crossSite)
        #expect(sent([site: "cross-site", mode: "cors"]) == nil)
        #expect(sent([site: "same-origin", mode: "navigate"]) == nil)
        #expect(sent([.origin: "https://evil.example", .accept: "text/html"]) == .crossSite)
        #expect(sent([.origin: "http://api.example", .accept: "text/html"]) == nil)
        #expect(sent([:]) == nil)
    }

    @Test(arguments: [
        (QueueObstacle.login, "POST /token?x=1", #"{ match: "POST /token", queue: always }"#),
        (.graphQL, "POST /graphql", #"{ match: "POST /graphql", kind: graphql }"#),
        (.question, "POST /v1/query", #"{ match: "POST /v1/query", read: true }"#),
    ])
    func theReasonNamesALineOfTheConfiguration(obstacle: QueueObstacle, line: String, remedy: String) {
        let words = line.split(separator: " ")
        let reason = obstacle.reason(for: request(String(words[0]), String(words[1])))
        #expect(reason.hasSuffix(remedy) && reason.contains("is not queued"))
    }

    @Test func theReasonNamesTheTypeAndNoLineThatDoesHarm() {
        let ipp = QueueObstacle.type.reason(for: request("POST", "/printers/a", [.contentType: "application/ipp"]))
        #expect(ipp.hasPrefix("a POST of application/ipp is not queued"))
        // The same path takes edits.
        #expect(QueueObstacle.question.reason(for: request("POST", "/api.php")) == "a question by POST is not queued")
        #expect(QueueObstacle.statement.reason(for: request("POST", "/query")) == "a statement in a query is not queued")
    }
}
