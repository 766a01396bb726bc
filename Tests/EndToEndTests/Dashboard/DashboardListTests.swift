// Lists, selections, settings and the keyboard of the dashboard, in a real browser.
import Foundation
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .enabled(if: Browser.isInstalled)) struct DashboardListTests {
    private func open(_ world: World, _ browser: Browser, at page: String = "/") async throws {
        try await browser.open("http://\(world.server.admin)/#token=\(world.server.token)")
        try await browser.until("location.hash === '#/' && document.querySelector('h1')")
        if page != "/" { try await browser.evaluate("location.hash = '#\(page)'") }
    }

    /// Queues writes while the upstream is switched off.
    private func queue(_ count: Int, in world: World) async throws {
        _ = try await world.server.command("network", "offline")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 1...count {
                if number > 8 { try await group.next() }
                group.addTask { _ = try await world.queued("PUT", "/v1/notes/\(number)", body: #"{"title":"number \#(number)"}"#) }
            }
            try await group.waitForAll()
        }
    }

    @Test func writesAreFoundSelectedAndDiscardedTogether() async throws {
        try await World.with { world in
            try await queue(12, in: world)
            let browser = try await Browser()
            try await open(world, browser, at: "/outbox")
            try await browser.until("document.querySelectorAll('.operations li').length === 12")
            try await browser.press("document.querySelector('#path')")
            try await browser.type("/v1/notes/1")
            try await browser.click("Search")
            // 1, 10, 11 and 12.
            try await browser.until("document.querySelectorAll('.operations li').length === 4")
            try await browser.press("document.querySelector('.picks input')")
            try await browser.sees("4 of 4 selected")
            try await browser.click("Discard")
            try await browser.sees("Discard 4 writes?")
            try await #expect(browser.evaluate("document.activeElement.innerText").string == "Not now", "Enter must not discard")
            try await browser.click("Discard 4")
            try await browser.sees("No write matches")
            try await #expect(world.server.operations("pending").count == 8)
            #expect(browser.complaints == [])
        }
    }

    @Test func aLongListIsReachedByAJump() async throws {
        try await World.with { world in
            try await queue(250, in: world)
            let browser = try await Browser()
            try await open(world, browser, at: "/outbox")
            try await browser.sees("250 rows in all")
            try await browser.press("document.querySelector('#page')")
            try await browser.evaluate("document.querySelector('#page').select()")
            try await browser.type("3")
            try await browser.click("Go")
            try await browser.until("document.querySelectorAll('.operations li').length === 50")
            try await browser.press("document.querySelector('.operations input')")
            try await browser.click("Select all 250")
            try await browser.sees("250 of 250 selected")
            #expect(browser.complaints == [])
        }
    }

    @Test func theCacheIsFilteredAndPurgedByRows() async throws {
        try await World.with { world in
            for number in 1...2 { _ = try await world.send("GET", "/v1/notes/\(number)") }
            for size in 1...3 { _ = try await world.send("GET", "/v1/assets/\(size)000") }
            let browser = try await Browser()
            try await open(world, browser, at: "/cache?path=/v1/assets/")
            try await browser.until("document.querySelectorAll('main tbody tr').length === 3")
            for words in ["127.0.0.1:\(world.api.port)", "200", "Served offline"] { try await browser.sees(words) }
            try await browser.press("document.querySelector('main tbody .pick input')")
            try await browser.click("Pin")
            // The filter names `pinned` too; the list is drawn again when all is done.
            try await browser.sees("Pinned: 1.")
            try await browser.until("document.querySelector('main tbody').innerText.includes('pinned')")
            try await browser.press("document.querySelector('main thead .pick input')")
            try await browser.sees("3 of 3 selected")
            try await browser.click("Purge")
            try await browser.click("Purge 3")
            try await browser.sees("No stored response matches")
            try await #expect(world.server.get("/v1/cache").json?["items"]?.array?.count == 2)
            #expect(browser.complaints == [])
        }
    }

    @Test func anEntityShowsItsWritesAndItsCopy() async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/notes/1")
            _ = try await world.server.command("network", "offline")
            let first = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"first"}"#)
            _ = try await world.queued("PATCH", "/v1/notes/1", body: #"{"body":"second"}"#)
            let browser = try await Browser()
            try await open(world, browser, at: "/outbox/\(first)")
            try await browser.click("/v1/notes/1 (history)")
            try await browser.sees("History of its writes")
            try await browser.sees("Stored copy")
            try await browser.until("document.querySelectorAll('.timeline li').length === 2")
            #expect(browser.complaints == [])
        }
    }

    @Test func theConfigurationIsShownWithItsSources() async throws {
        try await World.with { world in
            let browser = try await Browser()
            try await browser.open("http://\(world.server.admin)/#/configuration")
            try await browser.sees("The values need the admin token")
            // The token in the address is taken in an open tab too.
            try await browser.evaluate("location.hash = '#token=\(world.server.token)'")
            try await browser.until("location.hash === '#/'")
            try await browser.evaluate("location.hash = '#/configuration'")
            try await browser.sees("Effective values")
            try await browser.press("document.querySelector('#key')")
            try await browser.type("storage.state")
            try await browser.until("document.querySelectorAll('main tbody tr').length === 1")
            try await browser.sees(world.server.stateDirectory)
            try await browser.sees("rockpool.yaml:")
            #expect(browser.complaints == [])
        }
    }

    @Test func theThemeIsChosenAndKept() async throws {
        try await World.with { world in
            let browser = try await Browser()
            try await open(world, browser)
            let ground = "getComputedStyle(document.body).backgroundColor"
            let light = try await browser.evaluate(ground)
            try await browser.evaluate(
                "(() => { const one = document.getElementById('theme'); one.value = 'dark'; one.dispatchEvent(new Event('change')); })()")
            let dark = try await browser.evaluate(ground)
            #expect(light != dark)
            try await browser.open("http://\(world.server.admin)/?again")
            try await browser.until("document.querySelector('h1')")
            try await #expect(browser.evaluate(ground) == dark)
            try await browser.sees("Rockpool 1.")
        }
    }

    /// Presses Tab until the focused control has this name.
    private func tab(to name: String, _ browser: Browser) async throws {
        for _ in 0..<120 {
            try await browser.key("Tab", code: 9)
            let focused = try await browser.evaluate(
                "document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText?.trim() ?? ''")
            if focused.string == name { return }
        }
        Issue.record("\(name) is not reached by Tab")
    }

    @Test func aWriteIsDiscardedByTheKeyboardAlone() async throws {
        try await World.with { world in
            try await queue(1, in: world)
            let browser = try await Browser()
            try await open(world, browser, at: "/outbox")
            // The banner of every page says "1 write" as well: the key needs the page.
            try await browser.until("document.querySelector('#path') && document.querySelectorAll('.operations li').length === 1")
            try await browser.key("/", code: 191)
            try await browser.until("document.activeElement.id === 'path'")
            try await browser.evaluate("document.querySelector('h1').focus()")
            try await tab(to: "Select PUT /v1/notes/1", browser)
            try await browser.key(" ", code: 32)
            try await browser.sees("1 of 1 selected")
            // The focus stays where it is when the bar appears above it.
            let focused = try await browser.evaluate("document.activeElement.getAttribute('aria-label')")
            #expect(focused.string == "Select PUT /v1/notes/1")
            try await browser.evaluate("document.querySelector('h1').focus()")
            try await tab(to: "Discard", browser)
            try await browser.key("Enter", code: 13)
            try await browser.sees("Discard 1 write?")
            try await tab(to: "Discard 1", browser)
            try await browser.key("Enter", code: 13)
            try await browser.sees("Nothing waits")
            try await #expect(world.server.operations("pending").isEmpty)
            #expect(browser.complaints == [])
        }
    }
}
