// A gateway stands in for its origin: a server that compares `Origin` and `Referer` with its own name accepts its forms.
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(1))) struct GatewayNameTests {
    private static func echo(_ asked: PlayedSite.Asked) -> PlayedSite.Said {
        let names = ["host", "origin", "referer", "forwarded", "x-forwarded-for", "x-forwarded-host", "te"]
        return .text(names.map { "\($0)=\(asked[$0] ?? "")" }.joined(separator: "\n"), "Cache-Control: no-store")
    }

    private func ask(_ world: PlayedWorld) async throws -> [String] {
        let gateway = "http://\(world.server.gateway)"
        let fields = ["Origin: \(gateway)", "Referer: \(gateway)/login", "Content-Type: application/x-www-form-urlencoded", "TE: trailers"]
        return try await world.send("POST", "/form", fields: fields, body: "a=b").text.split(separator: "\n").map(String.init)
    }

    @Test func fieldsThatNameTheGatewayNameTheOrigin() async throws {
        try await PlayedWorld.with({ Self.echo($0) }) { world in
            let seen = try await ask(world)
            #expect(seen.contains("origin=\(world.url(""))") && seen.contains("referer=\(world.url("/login"))"), "\(seen)")
            for line in ["host=127.0.0.1:\(world.site.port)", "forwarded=", "te="] { #expect(seen.contains(line), "\(seen)") }
        }
    }

    @Test func preserveHostKeepsThem() async throws {
        try await PlayedWorld.with(upstream: ["preserve_host": true, "forwarded": true], { Self.echo($0) }) { world in
            let (seen, gateway) = (try await ask(world), world.server.gateway)
            #expect(seen.contains("host=\(gateway)") && seen.contains("origin=http://\(gateway)"), "\(seen)")
            #expect(seen.contains("x-forwarded-for=127.0.0.1") && seen.contains("x-forwarded-host=\(gateway)"), "\(seen)")
            #expect(seen.contains { $0.hasPrefix("forwarded=for=127.0.0.1;host=") }, "\(seen)")
        }
    }
}
