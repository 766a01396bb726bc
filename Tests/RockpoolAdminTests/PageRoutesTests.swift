// The files that the admin server serves; its OpenAPI description matches its routes.
import AdminPages
import HTTPTypes
import Hummingbird
import RockpoolCore
import RockpoolTesting
import Testing

@testable import RockpoolAdmin

@Suite struct PageRoutesTests {
    /// Returns the method and path of every operation in `openapi.yaml`, with paths in the router's notation.
    private func described() -> Set<String> {
        var (path, found) = ("", Set<String>())
        for line in String(decoding: AdminPage.openAPI.bytes, as: UTF8.self).split(separator: "\n").prefix(while: { $0 != "components:" }) {
            if line.hasPrefix("  /"), line.hasSuffix(":") { path = String(line.dropFirst(2).dropLast()) }
            let word = line.dropFirst(4).dropLast()
            if line.hasPrefix("    "), line.hasSuffix(":"), HTTPRequest.Method(word.uppercased()) != nil, word.first?.isLetter == true {
                found.insert("\(word.uppercased()) \(path)")
            }
        }
        return found
    }

    @Test func everyRouteIsDescribedAndNothingElseIs() throws {
        let served = try AdminDoor(ScriptedEngine()).routes.filter { !$0.hasPrefix("HEAD") }
        #expect(served.subtracting(described()) == [], "routes that are served but not in openapi.yaml")
        #expect(described().subtracting(served) == [], "routes in openapi.yaml that are not served")
    }

    @Test func thePageAsksForNothingThatIsNotServed() throws {
        let texts = [AdminPage.index] + AdminPage.parts.values
        let asked = texts.flatMap { page -> [String] in
            let text = String(decoding: page.bytes, as: UTF8.self)
            // Views are named, and fetched when they are first opened.
            return text.matches(of: /"(?:\/dashboard|\.)\/([a-z]+\.[a-z]+)"/).map { String($0.1) }
                + text.matches(of: /\ file: "([a-z]+)"/).map { String($0.1) + ".js" }
        }
        #expect(Set(asked) == Set(AdminPage.parts.keys))
        for page in texts {
            let text = String(decoding: page.bytes, as: UTF8.self).replacing("http://www.w3.org/2000/svg", with: "")
            #expect(!text.contains(/(src|href)="(https?:)?\/\//) && !text.contains("innerHTML") && !text.contains(/\sstyle="/))
        }
    }

    @Test func pagesComeWithAPolicyThatKeepsOthersOut() async throws {
        let door = try AdminDoor(ScriptedEngine())
        for target in ["/", "/dashboard/dashboard.css", "/dashboard/outbox.js", "/openapi.yaml"] {
            let answer = try await door.ask(.get, target, token: nil)
            #expect(answer.status == 200 && !answer.text.isEmpty && answer.fields[.xContentTypeOptions] == "nosniff", "\(target)")
            let policy = answer.fields[.contentSecurityPolicy] ?? ""
            #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"))
        }
        try await #expect(door.ask(.get, "/dashboard/nothing.js").status == 404)
        try await #expect(door.ask(.get, "/dashboard/..%2Findex.html").status == 404)
    }

    @Test(arguments: [
        (HTTPRequest.Method.post, "/v1/status", "GET, HEAD"), (.put, "/v1/operations/x", "DELETE, GET, HEAD, PATCH"),
        (.get, "/v1/storage/cleanup", "POST"), (.get, "/v1/sync/push", "POST"),
        (.patch, "/v1/cache", "DELETE, GET, HEAD"), (.post, "/", "GET, HEAD"),
    ])
    func anotherMethodIs405WithWhatIsAllowed(_ method: HTTPRequest.Method, _ target: String, _ allowed: String) async throws {
        let answer = try await AdminDoor(ScriptedEngine()).ask(method, target)
        #expect(answer.status == 405 && answer.fields[.allow] == allowed, "\(answer.fields)")
        #expect(answer.json["type"]?.string == "urn:rockpool:problem:method-not-allowed")
    }

    @Test(arguments: ["/nothing", "/v1", "/v1/operations/x/y", "/v1/conflicts/x/resolve/now"])
    func whatIsNotThereIs404(_ target: String) async throws {
        let answer = try await AdminDoor(ScriptedEngine()).ask(.get, target)
        #expect(answer.status == 404 && answer.json["type"]?.string == "urn:rockpool:problem:not-found")
    }
}
