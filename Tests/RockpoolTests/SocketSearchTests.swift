// The order in which the socket is looked for (docs/reference/cli.md#calling).
import RockpoolCore
import Testing

@testable import rockpool

@Suite struct SocketSearchTests {
    private func candidates(isNamed: Bool = false, socket: String? = nil, runtime: String? = "/run/user/7") -> [String] {
        var configuration = Configuration()
        configuration.storage.stateDir = "/home/a/state"
        configuration.admin.socket = socket
        var environment: [String: String] = [:]
        environment["XDG_RUNTIME_DIR"] = runtime
        return SocketSearch(configuration: configuration, isNamed: isNamed, environment: environment).candidates
    }

    @Test func theUsualPlacesComeInOrder() {
        #expect(candidates() == ["/run/user/7/rockpool/admin.sock", "/home/a/state/admin.sock", "/run/rockpool/admin.sock"])
        #expect(candidates(runtime: nil) == ["/home/a/state/admin.sock", "/run/rockpool/admin.sock"])
        #expect(candidates(runtime: "relative") == ["/home/a/state/admin.sock", "/run/rockpool/admin.sock"])
    }

    @Test func aPlaceThatWasNamedIsTheOnlyOne() {
        #expect(candidates(isNamed: true) == ["/home/a/state/admin.sock"])
        #expect(candidates(isNamed: true, socket: "/s") == ["/s"])
    }

    @Test func noPlaceIsLookedAtTwice() {
        #expect(candidates(socket: "/run/rockpool/admin.sock") == ["/run/user/7/rockpool/admin.sock", "/run/rockpool/admin.sock"])
    }
}
