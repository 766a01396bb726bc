// Fetches the description of an API, or collections with one of their entries (docs/reference/cli.md#init).
import Foundation
import RockpoolCore

/// Requests of `rockpool init`, all by GET.
struct APIProbe {
    let origin: OriginAddress

    /// Paths where APIs commonly serve their description.
    private static let usualPaths = [
        "/openapi.json", "/openapi.yaml", "/v3/api-docs", "/swagger.json", "/swagger/v1/swagger.json", "/api/openapi.json", "/api-docs",
        "/v1/openapi.json", "/.well-known/openapi.json", "/v1/__api__",
    ]

    /// What an API says of itself.
    enum Answer {
        case proposed(ProposedAPI)
        /// The API answers, and shows no resources.
        case nothing
        /// The reason why it does not answer, with advice.
        case unreachable(String)

        var proposal: ProposedAPI {
            if case .proposed(let api) = self { api } else { ProposedAPI() }
        }
    }

    /// What `path` itself is, a description or a collection, else a description at the usual paths.
    func usual(below path: String) throws -> Answer {
        let inner = path.isEmpty ? [] : [path] + (Self.usualPaths + ["/__api__"]).map { path + $0 }
        for place in inner + Self.usualPaths {
            let found: URLFetch.Document
            do { found = try URLFetch.get(origin.url + place) } catch {
                let proxy = EnvironmentProxy(for: origin, in: ProcessInfo.processInfo.environment)
                return .unreachable(error.reason + (proxy.map { "; \($0.advice)" } ?? ""))
            }
            if place == path, found.status >= 400 {
                Display.error.print("rockpool: \(origin.url)\(path) answers \(found.status): is the path right?".inOneLine)
            }
            guard found.status == 200, let document = DocumentText.value(of: found.body) else { continue }
            let reading = OpenAPIReading(document: document)
            if reading.isDescription { return .proposed(try reading.proposal(from: origin.url + place)) }
            if place == path, SampleReading.list(in: document) != nil { return .proposed(try collections([path])) }
        }
        return .nothing
    }

    /// The resources of collections, each with one entry, which shows where the object lies in an item's body.
    func collections(_ paths: [String]) throws -> ProposedAPI {
        var reading = SampleReading()
        var empty: [String] = []
        for path in paths {
            guard path.hasPrefix("/") else { throw CommandFailure(.usage, "--collection takes a path such as /v1/notes") }
            guard let list = try? URLFetch.get(origin.url + path), (200..<300).contains(list.status) else {
                throw CommandFailure(.failed, "\(origin.url)\(path) cannot be fetched".inOneLine)
            }
            let document = DocumentText.value(of: list.body)
            reading.note(
                method: "GET", path: path, status: list.status, body: document, cacheControl: list.cacheControl, hasETag: list.hasETag)
            guard let (_, entries) = document.flatMap({ SampleReading.list(in: $0) }) else {
                empty.append(path)
                continue
            }
            guard let item = entries.first.flatMap({ SampleReading.path(of: $0, in: path) }),
                let entry = try? URLFetch.get(origin.url + item)
            else { continue }
            reading.note(
                method: "GET", path: item, status: entry.status, body: DocumentText.value(of: entry.body), cacheControl: entry.cacheControl,
                hasETag: entry.hasETag)
        }
        var api = reading.proposal()
        api.notes += empty.map { "GET \($0): no list of objects, or an empty one" }
        api.source = "GET of \(paths.joined(separator: ", "))"
        return api
    }
}

extension OpenAPIReading {
    /// The proposal of a description that was found at `place`. Throws if the document is none.
    func proposal(from place: String) throws -> ProposedAPI {
        guard isDescription else { throw CommandFailure(.failed, "\(place) is no OpenAPI description".inOneLine) }
        var api = proposal()
        api.source = place
        return api
    }
}
