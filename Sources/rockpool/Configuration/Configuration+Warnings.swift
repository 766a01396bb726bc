// What a configuration may say and hardly means.
import RockpoolCore

extension Configuration {
    /// Lines for people; none stops anything.
    var warnings: [String] {
        upstreams.indices.flatMap { index in
            upstreams[index].routes.enumerated().filter { $1.looksLikeGraphQL }.map { number, route in
                "upstreams[\(index)].routes[\(number)] (\(route.match)): cache: body is for searches. A GraphQL endpoint wants kind: graphql, "
                    + "which tells queries from mutations; until then a body that is no query is neither stored nor answered from the cache"
            }
        }
    }
}

extension Route {
    /// Whether bodies that may be mutations are made keys of.
    fileprivate var looksLikeGraphQL: Bool {
        guard cache == .body else { return false }
        let path = match.split(separator: " ").last.map { $0.lowercased() } ?? ""
        return path.split(separator: "/").contains { $0 == "graphql" || $0 == "gql" }
    }
}
