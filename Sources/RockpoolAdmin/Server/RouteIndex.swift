// The methods of each path, for 405 and its `Allow` (RFC 9110 §15.5.6).
import HTTPTypes
import Hummingbird

/// The routes of a router by path.
struct RouteIndex: Sendable {
    private let routes: [(parts: [String], methods: Set<HTTPRequest.Method>)]

    init(_ router: Router<AdminContext>) {
        let byPath = Dictionary(grouping: router.routes) { $0.path.description }
        routes = byPath.map { path, routes in (Self.parts(of: path), Set(routes.map(\.method))) }
    }

    /// The methods of `path`; empty if no route matches. A literal segment takes precedence over a variable one.
    func methods(of path: String) -> Set<HTTPRequest.Method> {
        let asked = Self.parts(of: path)
        let found = routes.filter { $0.parts.count == asked.count && zip($0.parts, asked).allSatisfy { $0 == $1 || Self.isVariable($0) } }
        let literal = found.filter { !$0.parts.contains(where: Self.isVariable) }
        return (literal.isEmpty ? found : literal).reduce(into: []) { $0.formUnion($1.methods) }
    }

    private static func parts(of path: String) -> [String] { path.split(separator: "/").map(String.init) }

    private static func isVariable(_ part: String) -> Bool { part.hasPrefix(":") || part.hasPrefix("{") }
}
