// docs/outbox.md#learning: traffic that looks like resources and is none, and traffic without end.
import HTTPTypes
import Testing

@testable import RockpoolCore

private let longName = String(repeating: "a", count: 600)
private let longID = String(repeating: "9", count: 200)

@Suite struct HostileTrafficTests {
    @Test(
        arguments: [
            // Calls by POST, and answers that name the call.
            [.post("/rpc", #"{"jsonrpc":"2.0","id":1,"result":[{"id":5}]}"#, status: 200), .get("/rpc/1", #"{"id":1}"#)],
            [.get("/rpc", #"{"jsonrpc":"2.0","id":1,"result":[{"id":5}]}"#), .get("/rpc/5", #"{"id":5}"#)],
            // A search, whose hits are elsewhere.
            [.get("/search?q=a", #"[{"id":1,"t":"a"}]"#), .get("/notes/1", #"{"id":1,"t":"a"}"#)],
            // Two lists in one answer, entries of several kinds with equal ids, entries without ids.
            [.get("/all", #"{"users":[{"id":1}],"groups":[{"id":1}]}"#), .get("/all/1", #"{"id":1}"#)],
            [.get("/feed", #"[{"id":1,"kind":"a"},{"id":1,"kind":"b"}]"#), .get("/feed/1", #"{"id":1,"kind":"a"}"#)],
            [.get("/log", #"[{"line":"x"},{"line":"y"}]"#), .get("/log/1", #"{"line":"x"}"#)],
            [.get("/mixed", #"[{"id":1},"two",3]"#), .get("/mixed/1", #"{"id":1}"#)],
            [.get("/nested", #"[{"id":{"a":1}},{"id":[2]}]"#), .get("/nested/1", #"{"id":1}"#)],
            // An entity with parts.
            [.get("/note", #"{"id":1,"comments":[{"id":5,"t":"x"}]}"#), .get("/note/5", #"{"id":5,"t":"x"}"#)],
            // Files and their names; a page that says the id it was asked for.
            [.get("/files", #"[{"id":"a.txt"}]"#), .get("/files/a.txt", #"{"content":"x"}"#)],
            [.get("/echo", #"[{"id":1,"a":1,"b":2,"c":3}]"#), .get("/echo/1", #"{"id":1,"path":"/echo/1","time":"now"}"#)],
            // The answer is not the origin's word on it.
            [.get("/notes", #"[{"id":1}]"#), .get("/notes/1", #"{"id":1}"#, status: 404)],
            [.get("/notes", #"[{"id":1}]"#, [.contentType: "text/html"]), .get("/notes/1", #"{"id":1}"#)],
            [.get("/notes", #"[{"id":1}]"#), .get("/notes/1", #"{"id":1}"#, [.contentType: "application/hal+json"])],
            [.get("/notes", #"[{"id":1}]"#, status: 206), .get("/notes/1", #"{"id":1}"#)],
            // Paths that are none of a template.
            [.get("/", #"[{"id":1}]"#), .get("/1", #"{"id":1}"#)],
            [.get("/a//b", #"[{"id":1}]"#), .get("/a//b/1", #"{"id":1}"#)],
            [.get("/a/../b", #"[{"id":1}]"#), .get("/a/../b/1", #"{"id":1}"#)],
            [.get("/a{id}", #"[{"id":1}]"#), .get("/a{id}/1", #"{"id":1}"#)],
            [.get("/\(longName)", #"[{"id":1}]"#), .get("/\(longName)/1", #"{"id":1}"#)],
            [.get("/notes", #"[{"id":""}]"#), .get("/notes/", #"{"id":""}"#)],
            // Long ids and names.
            [.get("/notes", #"[{"id":"\#(longID)"}]"#), .get("/notes/\(longID)", #"{"id":"\#(longID)"}"#)],
        ] as [[Traffic]])
    func nothingIsLearned(traffic: [Traffic]) {
        var learner = ResourceLearner()
        for one in traffic + traffic.reversed() { #expect(learner.note(one).isEmpty, "\(one)") }
        #expect(learner.resources.isEmpty)
    }

    @Test func learnedPathsDoNotReachBeyondWhatWasSeen() {
        var configuration = Configuration()
        configuration.upstreams = [Upstream(name: "api", origin: Traffic.origin)]
        let learner = ResourceLearner([
            .get("/users", #"[{"id":1,"n":"a"},{"id":2,"n":"b"}]"#), .get("/users/1", #"{"id":1,"n":"a"}"#),
        ])
        let routes = RouteTable(configuration, learned: ["api": learner.shown])
        func resource(_ method: HTTPRequest.Method, _ target: String) -> Resource? {
            routes.plan(for: RequestHead(method: method, origin: Traffic.origin, target: target)).entity?.resource
        }
        #expect(resource(.get, "/users") != nil && resource(.get, "/users/7") != nil && resource(.patch, "/users/7") != nil)
        #expect(resource(.put, "/users/loc_01890a5d-ac96-774b-bcce-b302099a8057") != nil)
        for target in ["/users/me", "/users/search", "/users/1a", "/users/-1", "/accounts/1", "/users/1/posts"] {
            #expect(resource(.get, target) == nil, "\(target)")
        }
        for target in ["/users/me", "/users/bulk"] { #expect(resource(.put, target) == nil, "\(target)") }
        // What a write to the collection does was not seen.
        for method in [HTTPRequest.Method.post, .put, .patch, .delete] { #expect(resource(method, "/users") == nil, "\(method)") }
        configuration.upstreams[0].undeclaredResources = .off
        let off = RouteTable(configuration, learned: ["api": learner.shown])
        #expect(off.plan(for: RequestHead(method: .get, origin: Traffic.origin, target: "/users")).entity == nil)
        configuration.upstreams[0].undeclaredResources = .learned
        configuration.upstreams[0].resources = [Resource(collection: "/notes")]
        let declared = RouteTable(configuration, learned: ["api": learner.shown])
        #expect(declared.plan(for: RequestHead(method: .get, origin: Traffic.origin, target: "/users")).entity == nil)
    }

    @Test func everythingIsBounded() {
        var learner = ResourceLearner()
        for n in 0..<1_000 {
            _ = learner.note(.get("/c\(n)", #"[{"id":1,"t":"a"}]"#, owner: "o\(n % 50)"))
            _ = learner.note(.get("/d\(n)/1", #"{"id":1,"t":"a"}"#, owner: "o\(n % 50)"))
            _ = learner.noteUnstored("/u\(n)")
        }
        #expect(learner.open.count <= ResourceLearner.ownerLimit * ResourceLearner.listLimit)
        #expect(learner.report.count { $0.state == .unstored } <= ResourceLearner.memoryLimit)
        for n in 0..<500 {
            _ = learner.note(.get("/c\(n)", #"[{"id":1,"t":"a"}]"#))
            _ = learner.note(.get("/c\(n)/1", #"{"id":1,"t":"a"}"#))
        }
        #expect(learner.resources.count == ResourceLearner.shapeLimit)
        for n in 0..<500 { _ = learner.note(.get("/c\(n)", #"{"error":1}"#)) }
        #expect(learner.resources.isEmpty)
        #expect(learner.report.count { $0.state == .withdrawn } <= ResourceLearner.memoryLimit)
    }
}
