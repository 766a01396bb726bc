// The dashboard in a real browser with the real server: live updates, decisions, cleanup, accessibility.
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.serialized, .enabled(if: Browser.isInstalled, "Chromium is not installed: make deps-test")) struct DashboardTests {
    /// The directory of the screenshots, for manual inspection.
    private static let pictures = FileManager.default.temporaryDirectory.path + "/rockpool-dashboard"

    /// Opens the dashboard with the token in the URL, as `#token=`.
    private func open(_ world: World, _ browser: Browser, at page: String = "/") async throws {
        try await browser.open("http://\(world.server.admin)/#token=\(world.server.token)")
        try await browser.until("location.hash === '#/' && document.querySelector('h1')")
        if page != "/" { try await browser.evaluate("location.hash = '#\(page)'") }
    }

    @Test func anOfflineWriteAppearsWithoutAReload() async throws {
        try await World.with { world in
            let browser = try await Browser()
            try await open(world, browser)
            try await browser.sees("Everything is in sync")
            try await browser.sees("Live")
            try await browser.evaluate("window.isTheSamePage = true")
            await world.goOffline()
            _ = try await world.queued("POST", "/v1/notes", body: #"{"title":"from the boat"}"#)
            try await browser.sees("Offline: notes cannot be reached", within: .seconds(10))
            try await browser.sees("1 write waits on disk")
            try await browser.click("Open the outbox")
            try await browser.sees("notes is offline")
            try await world.api.restart()
            try await browser.sees("Nothing waits")
            try await #expect(browser.evaluate("window.isTheSamePage").bool == true)
            #expect(browser.complaints == [])
        }
    }

    @Test func aConflictIsResolvedByClickingAndTheTokenIsAskedForOnce() async throws {
        let rules: JSONValue = [
            "resources": [["collection": "/v1/notes", "item": "/v1/notes/{id}", "fields": ["/title": "ask", "/body": "ask"]]]
        ]
        try await World.with(seed: [["title": "first", "body": "base"]], upstream: rules) { world in
            _ = try await world.send("GET", "/v1/notes/1")
            await world.goOffline()
            let id = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"mine","body":"mine too"}"#)
            _ = world.api.edit(note: "1", with: ["title": "theirs", "body": "theirs too"])
            try await world.api.restart()
            _ = try await world.server.operation(id, reaching: "conflicted")
            let browser = try await Browser()
            try await browser.open("http://\(world.server.admin)/")
            try await browser.sees("1 conflict waits for you")
            try await browser.click("Resolve")
            try await browser.sees("Both sides changed it")
            try await browser.press("document.querySelector('.operation')")
            try await browser.sees("2 fields are still to be chosen")
            try await choose("mine", of: "/title", browser)
            try await choose("theirs", of: "/body", browser)
            try await browser.click("Apply")
            try await browser.sees("Changes need the admin token")
            try await browser.type("not the token")
            try await browser.click("Continue")
            try await browser.sees("That was not the token")
            try await browser.press("document.querySelector('#token')")
            try await browser.type(world.server.token)
            try await browser.click("Continue")
            try await browser.sees("Undo this decision")
            try await world.server.outboxIsEmpty()
            let note = try await Curl.send("GET", "http://127.0.0.1:\(world.api.port)/v1/notes/1").json
            #expect(note?["title"]?.string == "mine" && note?["body"]?.string == "theirs too", "\(String(describing: note))")
            try await browser.click("Undo this decision")
            try await browser.click("Undo it")
            try await browser.until("location.hash.startsWith('#/outbox/')")
        }
    }

    private func choose(_ side: String, of pointer: String, _ browser: Browser) async throws {
        try await browser.press("document.querySelector(`fieldset[data-key='\(pointer)'] input[value=\(side)]`)", as: side)
        try await browser.until("document.querySelector(`fieldset[data-key='\(pointer)'] input[value=\(side)]`).checked")
    }

    @Test func aCleanupIsPreviewedAndThenRun() async throws {
        try await World.with(upstream: ["routes": [["match": "/v1/assets/**", "category": "assets"]]]) { world in
            for asset in 1...3 { _ = try await world.send("GET", "/v1/assets/\(asset)000") }
            let browser = try await Browser()
            try await open(world, browser, at: "/storage")
            try await browser.sees("By category")
            try await #expect(browser.evaluate("document.querySelectorAll('[aria-labelledby=over-time] figure').length").integer == 3)
            try await #expect(browser.evaluate("document.body.innerText.includes('Clean up now')").bool == false)
            try await browser.press("document.querySelector('.checks input')")
            try await browser.click("Show what would be removed")
            try await browser.sees("What would happen")
            try await browser.sees("3 entries")
            try await #expect(world.server.get("/v1/cache").json?["items"]?.array?.count == 3, "a preview removes nothing")
            try await browser.click("Clean up now")
            try await browser.sees("What was done")
            try await #expect(world.server.get("/v1/cache").json?["items"]?.array?.isEmpty == true)
        }
    }

    /// Right after a start the chart ends with the size of now, and does not pretend to a day; no button is larger than its line.
    @Test func aYoungChartIsShortAndACopyButtonFits() async throws {
        try await World.with { world in
            for asset in 1...3 { _ = try await world.send("GET", "/v1/assets/\(asset)00000") }
            let browser = try await Browser(width: 390, height: 1000)
            try await open(world, browser, at: "/storage")
            try await browser.sees("Size over the last day")
            let used = try await browser.evaluate(
                "document.querySelector('.gauge[data-key=\"In use\"] .figures').innerText.split(' of ')[0]")
            let now = try await browser.evaluate("document.querySelector('.chart[data-key=\"Cache size\"] .now').innerText")
            #expect(now.string?.isEmpty == false && now == used)
            let path = try await browser.evaluate("document.querySelector('.chart[data-key=\"Cache size\"] path').getAttribute('d')").string
            let start = try #require(path?.firstMatch(of: /^M([0-9.]+)/).flatMap { Double($0.1) }, "\(path ?? "")")
            #expect(start > 500 && path?.contains("L600 ") == true, "\(path ?? "")")
            try await browser.evaluate("location.hash = '#/setup'")
            try await browser.sees("rockpool add https://api.example.com")
            let outside = """
                [...document.querySelectorAll('.snippet')].filter((one) => {
                  const [pre, button] = ['pre', 'button'].map((name) => one.querySelector(name).getBoundingClientRect());
                  return button.top < pre.top || button.bottom > pre.bottom || button.right > pre.right;
                }).map((one) => one.innerText)
                """
            try await #expect(browser.evaluate(outside).array?.compactMap(\.string) == [])
        }
    }

    @Test func requestsAppearAsTheyComeWithTheirReason() async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/notes/1")
            let browser = try await Browser()
            try await open(world, browser, at: "/requests")
            try await browser.sees("/v1/notes/1")
            _ = try await world.send("GET", "/v1/absent")
            try await browser.sees("/v1/absent", within: .seconds(10))
            try await browser.evaluate("location.hash = '#/requests?status=4xx'")
            try await browser.until("document.querySelectorAll('main tbody tr').length === 1")
            try await browser.press("document.querySelector('main tbody a')")
            for words in ["Steps", "fetched", "First byte", "Replay as curl", "curl --globoff"] { try await browser.sees(words) }
            #expect(browser.complaints == [])
        }
    }

    @Test func theSwitchTurnsAnUpstreamOff() async throws {
        try await World.with { world in
            let browser = try await Browser()
            try await open(world, browser)
            try await browser.sees("Everything is in sync")
            try await browser.press("document.querySelector(`input[name='mode-notes'][value=offline]`)")
            try await browser.sees("Offline by your choice: notes")
            try await #expect(world.server.get("/v1/network").json?["upstreams"]?.array?.first?["mode"]?.string == "offline")
            try await browser.press("document.querySelector(`input[name='mode-notes'][value=auto]`)")
            try await browser.sees("Everything is in sync")
        }
    }

    /// The parents as `rockpool status` has them: in their order, with the one in use.
    @Test func parentProxiesAreShownInTheirOrder() async throws {
        let urls = (0..<2).map { _ in "http://127.0.0.1:\(FreePort.next())" }
        var settings = ServerSettings()
        settings.via = [["hosts": ["*"], "url": .string(urls[0]), "others": [["url": .string(urls[1])]]]]
        let server = try await ServerProcess.start(settings)
        let browser = try await Browser(width: 390, height: 1000)
        try await browser.open("http://\(server.admin)/")
        try await browser.sees("Parent proxies")
        let rows = "[...document.querySelectorAll('section[aria-labelledby=parents] tbody tr')].map((row) => row.innerText).join('|')"
        let shown = try #require(try await browser.evaluate(rows).string)
        let (first, second) = (try #require(shown.firstRange(of: urls[0])), try #require(shown.firstRange(of: urls[1])))
        #expect(first.lowerBound < second.lowerBound && shown.contains("yes") && shown.contains("no"), "\(shown)")
        let faults = try await browser.evaluate(AccessibilityPass.script)
        #expect(faults.array?.compactMap(\.string) == [])
        #expect(browser.complaints == [])
        try await server.stop()
    }

    @Test func aClientThatDoesNotTrustUsIsShownWithWhatToDo() async throws {
        try await SecureWorld.with { world in
            let reply = try await Curl.send("GET", world.site.url + "/tide.json", options: ["--proxy", "http://" + world.server.proxy])
            #expect(reply.exit == 60)
            let browser = try await Browser(width: 390, height: 1000)
            try await browser.open("http://\(world.server.admin)/")
            try await browser.sees("Clients that do not trust us")
            for words in ["127.0.0.1", "localhost", "unknown_ca", "rockpool ca install", "certificate refused"] {
                try await browser.sees(words)
            }
            let faults = try await browser.evaluate(AccessibilityPass.script)
            #expect(faults.array?.compactMap(\.string) == [])
            #expect(browser.complaints == [])
        }
    }

    @Test(arguments: [(1280, false), (1280, true), (390, false), (390, true)])
    func everyPagePassesTheChecksAtEveryWidth(_ width: Int, _ isDark: Bool) async throws {
        try await World.with(seed: [["title": "first", "body": "base"]]) { world in
            let (operation, conflict) = try await fill(world)
            let browser = try await Browser(width: width, height: 1000, isDark: isDark)
            try FileManager.default.createDirectory(atPath: Self.pictures, withIntermediateDirectories: true)
            try await open(world, browser)
            let url = "http%3A%2F%2F127.0.0.1%3A\(world.api.port)%2Fv1%2Fnotes%2F1"
            let request = try await world.server.get("/v1/requests?verdict=miss").json?["items"]?.array?.first?["id"]?.string ?? ""
            let pages = [
                ("requests", "/requests"), ("no-requests", "/requests?verdict=collapsed"), ("request", "/requests/\(request)"),
                ("overview", "/"), ("outbox", "/outbox?state=all"), ("operation", "/outbox/\(operation)"), ("conflicts", "/conflicts"),
                ("conflict", "/conflicts/\(conflict)"), ("differences", "/conflicts/\(conflict)?show=diff"),
                ("by-hand", "/conflicts/\(conflict)?show=edit"), ("cache", "/cache"), ("entry", "/cache/entry?url=\(url)"),
                ("storage", "/storage"), ("sync", "/sync"), ("setup", "/setup"), ("help", "/help"), ("configuration", "/configuration"),
                ("entity", "/entity?upstream=notes&entity=%2Fv1%2Fnotes%2F1&lane=notes%20%2Fv1%2Fnotes%2F1&url=\(url)"),
            ]
            for (name, page) in pages {
                try await browser.evaluate("location.hash = '#\(page)'")
                try await browser.until("document.body.dataset.shown === '#\(page)' && document.querySelector('main h1')")
                let faults = try await browser.evaluate(AccessibilityPass.script)
                #expect(faults.array?.compactMap(\.string) == [], "\(name) at \(width)\(isDark ? ", dark" : "")")
                try await browser.screenshot(to: "\(Self.pictures)/\(name)-\(width)\(isDark ? "-dark" : "").png")
            }
        }
    }

    /// Checks that the accessibility pass reports the defects of a bad page; a pass without any findings would otherwise prove nothing.
    @Test func thePassFindsWhatItIsFor() async throws {
        let page = """
            <title>x</title><main><h1 style='color:%23aaa;background:%23fff'>pale</h1><h3>skipped</h3><button style='width:9px;height:9px'></button>
            <input id='a'><p id='a'>twice</p><p aria-labelledby='nobody'>x</p><div style='width:3000px'>wide</div><label for='b' hidden>unseen</label><select id='b'><option>one</option></select></main><main></main>
            """
        let browser = try await Browser()
        try await browser.open("data:text/html," + page.replacing("\n", with: ""))
        try await browser.until("document.querySelector('h3')")
        let faults = try await browser.evaluate(AccessibilityPass.script).array?.compactMap(\.string) ?? []
        for words in [
            "no language", "main is not there 1", "contrast of 2.32", "after a heading of level 1", "button \"\": has no name",
            "too small to hit",
            "input \"\": has no name", "select \"one\": has no name", "the id a is there twice", "points to nothing (nobody)",
            "wide in 1280",
        ] { #expect(faults.contains { $0.contains(words) }, "\(words) is not among \(faults)") }
    }

    /// Creates a conflict, a refused write and a cached asset. Returns the ids of an operation and of the conflict.
    private func fill(_ world: World) async throws -> (operation: String, conflict: String) {
        _ = try await world.send("GET", "/v1/notes/1")
        _ = try await world.send("GET", "/v1/assets/1000")
        await world.goOffline()
        let id = try await world.queued("PATCH", "/v1/notes/1", body: #"{"title":"mine"}"#)
        _ = world.api.edit(note: "1", with: ["title": "theirs"])
        try await world.api.restart()
        _ = try await world.server.operation(id, reaching: "conflicted")
        // Its record follows the state.
        try await eventually("a conflict") { try await world.server.get("/v1/conflicts").json?["items"]?.array?.isEmpty == false }
        let conflicts = try await world.server.get("/v1/conflicts").json?["items"]?.array
        return (id, try #require(conflicts?.first?["id"]?.string))
    }

    @Test func everythingIsReachedByTheKeyboardAlone() async throws {
        try await World.with { world in
            let browser = try await Browser()
            try await open(world, browser)
            try await browser.sees("Everything is in sync")
            try await browser.evaluate("document.querySelector('.skip').focus()")
            var reached: [String] = []
            for _ in 0..<60 {
                try await browser.key("Tab", code: 9)
                reached.append(
                    try await browser.evaluate(
                        "(document.activeElement.closest('label') ?? document.activeElement).innerText?.trim() || document.activeElement.tagName"
                    ).string ?? "")
            }
            for name in ["Outbox", "Storage", "Set up a client", "Automatic", "Clean up"] {
                #expect(reached.contains(name), "\(name) is not among \(reached)")
            }
        }
    }
}
