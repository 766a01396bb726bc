// Warnings for configurations that are valid but probably unintended.
import RockpoolCore

extension Configuration {
    /// One line per warning.
    var warnings: [String] {
        upstreams.indices.flatMap { index in
            upstreams[index].routes.enumerated().filter { $1.looksLikeGraphQL }.map { number, route in
                "upstreams[\(index)].routes[\(number)] (\(route.match)): use kind: graphql; with cache: body a request that names "
                    + "its operation by a hash only is neither stored nor queued, and the reply to a queued mutation is no GraphQL response"
            }
        }
    }
}

extension Route {
    /// True if the route makes cache keys of bodies that may be mutations.
    fileprivate var looksLikeGraphQL: Bool {
        guard isKeyedByBody, kind != .graphql else { return false }
        let path = match.split(separator: " ").last.map { $0.lowercased() } ?? ""
        return path.split(separator: "/").contains { $0 == "graphql" || $0 == "gql" }
    }
}
