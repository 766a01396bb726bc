// The CA bundle files for clients: built from the list that a shell uses, without changing the files of another shell.
import Foundation
import RockpoolCore
import RockpoolNetwork
import Testing

@testable import rockpool

@Suite struct TrustFilesTests {
    /// A temporary state directory with an authority, and CA lists beside it.
    private final class Place {
        let path = "/tmp/rpt-trust-" + UUID().uuidString.prefix(13).lowercased()
        var files: AuthorityFiles { AuthorityFiles(stateDirectory: path) }
        var warnings: [String] = []

        init(hasAuthority: Bool = true) throws {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            if hasAuthority { _ = try files.loadOrMake { try .make(host: "test", now: Timestamp(seconds: 1_767_225_600)) } }
            for name in ["system", "mine"] { try "list of \(name)\n".write(toFile: "\(path)/\(name)", atomically: true, encoding: .utf8) }
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }

        func trust(_ environment: [String: String] = [:], systems: [String]? = nil) -> TrustFiles {
            var trust = TrustFiles(authority: files, environment: environment) { self.warnings.append($0) }
            trust.systemBundles = systems ?? [path + "/none", path + "/system"]
            return trust
        }

        func text(_ path: String?) throws -> String { try String(contentsOfFile: #require(path), encoding: .utf8) }
        var own: String { get throws { try text(files.certificatePath) } }
    }

    @Test func `The bundle holds what the system trusts and our authority`() throws {
        let place = try Place()
        let bundle = try place.text(place.trust().writeBundle())
        #expect(try bundle.contains("list of system\n") && bundle.hasSuffix(place.own) && place.warnings.isEmpty)
    }

    @Test func `A shell that chose another list changes nobody else's`() throws {
        let place = try Place()
        let usual = try #require(try place.trust().writeBundle())
        let before = try place.text(usual)
        let chosen = try #require(try place.trust(["SSL_CERT_FILE": place.path + "/mine"]).writeBundle())
        #expect(try chosen != usual && place.text(chosen).contains("list of mine\n") && !place.text(chosen).contains("list of system"))
        #expect(try place.text(usual) == before)
        // In a shell that already uses one of these bundles, the path and the file stay as they are.
        for path in [usual, chosen] {
            let text = try place.text(path)
            #expect(try place.trust(["SSL_CERT_FILE": path]).writeBundle() == path && place.text(path) == text)
        }
        #expect(place.warnings.isEmpty)
    }

    @Test func `What has changed is made anew under the same name`() throws {
        let place = try Place()
        let environment = ["SSL_CERT_FILE": place.path + "/mine"]
        let path = try #require(try place.trust(environment).writeBundle())
        try place.files.replace(with: .make(host: "new", now: Timestamp(seconds: 1_767_225_600)))
        #expect(try place.trust(environment).writeBundle() == path)
        #expect(try place.text(path).hasSuffix(place.own))
    }

    @Test func `A list that cannot be read is said, and the system's taken`() throws {
        let place = try Place()
        let path = try place.trust(["SSL_CERT_FILE": place.path + "/nowhere"]).writeBundle()
        #expect(try place.text(path).contains("list of system"))
        #expect(place.warnings.count == 1 && place.warnings.first?.contains("/nowhere") == true)
    }

    @Test(arguments: [true, false]) func `A machine without a list is said in one line`(hasAuthority: Bool) throws {
        let place = try Place(hasAuthority: hasAuthority)
        let path = try place.trust(systems: []).writeBundle()
        #expect(place.warnings.count == 1 && place.warnings.first?.contains("ca-certificates") == true)
        // An empty list would remove the client's built-in trust anchors.
        if hasAuthority { #expect(try place.text(path).hasSuffix(place.own)) } else { #expect(path == nil) }
    }

    @Test func `wget keeps what its own file says, in a set-up shell too`() throws {
        let place = try Place()
        try "timeout = 7\n".write(toFile: place.path + "/.wgetrc", atomically: true, encoding: .utf8)
        let path = try place.trust(["HOME": place.path]).writeWget(bundle: "/b/bundle.pem")
        let text = try place.text(path)
        #expect(text.contains("timeout = 7\n") && text.hasSuffix("ca_certificate = /b/bundle.pem\n"))
        let again = try place.trust(["HOME": place.path, "WGETRC": path]).writeWget(bundle: "/b/bundle.pem")
        #expect(try again == path && place.text(path) == text)
        let other = try place.trust(["HOME": place.path, "WGETRC": place.path + "/mine"]).writeWget(bundle: "/b/bundle.pem")
        #expect(try other != path && place.text(other).contains("list of mine") && place.text(path) == text)
    }
}
