// Django's admin behind a gateway, used with a browser: online, away and back (docs/guide/programs.md).
import Foundation
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .timeLimit(.minutes(4))) struct DjangoProgramTests {
    private static let python = Python.with("django")
    private static let script = URL(filePath: #filePath).appending(path: "../../../programs/django_site.py").standardized.path
    /// The pages are kept although they have `no-store`, each in the partition of its session.
    private static let upstream: JSONValue = [
        "identity": "cookie:sessionid", "routes": [["match": "GET /admin/**", "store": "always"]],
    ]

    private func with(_ body: (ProgramWorld, Browser) async throws -> Void) async throws {
        let python = try #require(Self.python)
        try await ProgramWorld.with({ ([python, Self.script, "\($0)", $1]) }, upstream: Self.upstream) { world in
            let browser = try await Browser()
            try await browser.open("http://\(world.server.gateway)/admin/")
            try await submit(["username": "ada", "password": "low water"], on: browser)
            try await browser.sees("Site administration")
            try await body(world, browser)
        }
    }

    /// Fills the page's form and submits it, as its user would.
    private func submit(_ values: [String: String], on browser: Browser) async throws {
        let form = "[...document.forms].find((one) => one.method === 'post' && one.id !== 'logout-form')"
        for (name, value) in values {
            try await browser.until("\(form)?.elements['\(name)']")
            try await browser.evaluate("\(form).elements['\(name)'].value = '\(value)'")
        }
        try await browser.evaluate("\(form).requestSubmit(\(form).querySelector('[type=submit]'))")
    }

    private func add(_ group: String, in world: ProgramWorld, on browser: Browser) async throws {
        try await browser.open("http://\(world.server.gateway)/admin/auth/group/add/")
        try await browser.sees("Add group")
        try await submit(["name": group], on: browser)
    }

    @Test(.enabled(if: Self.python != nil && Browser.isInstalled, "django or chromium is not installed"))
    func groupsAreAddedOnlineAndAway() async throws {
        try await with { world, browser in
            try await browser.open("http://\(world.server.gateway)/admin/auth/group/")
            try await browser.sees("0 groups")
            try await add("divers", in: world, on: browser)
            try await browser.sees("was added successfully")
            try await browser.sees("1 group")
            try await world.turn("offline")
            // What was saved online is there, although the page that shows it varied by the cookie of its message.
            try await browser.open("http://\(world.server.gateway)/admin/auth/group/")
            try await browser.sees("divers")
            try await add("sailors", in: world, on: browser)
            try await browser.sees("pending")
            try await world.turn("auto")
            try await world.server.outboxIsEmpty()
            try await browser.open("http://\(world.server.gateway)/admin/auth/group/")
            try await browser.sees("2 groups")
            try await browser.sees("sailors")
            // The next form is the site's own again.
            try await add("swimmers", in: world, on: browser)
            try await browser.sees("3 groups")
        }
    }
}
