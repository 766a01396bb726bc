// A real headless browser, controlled over two pipes with the DevTools protocol (one JSON message, one NUL).
import Foundation
import Glibc
import RockpoolCore
import RockpoolTesting
import Synchronization

/// One page of a headless Chromium.
final class Browser: PageWindow {
    /// An error reported by the page or the browser.
    struct Refused: Error, CustomStringConvertible {
        let description: String
    }

    private struct State {
        var nextID = 0
        var answers: [Int: JSONValue] = [:]
        var complaints: [String] = []
        var session: String?
        var isGone = false
    }

    private static let path = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    /// True if a browser is installed.
    static var isInstalled: Bool { path != nil }

    private let scratch: Scratch
    private let child: ChildProcess
    private let toBrowser: Int32
    private let state = Mutex(State())

    /// Starts the browser with one empty page of the given size. Throws when no browser is installed.
    init(width: Int = 1280, height: Int = 900, isDark: Bool = false) async throws {
        guard let path = Self.path else { throw Refused(description: "no Chromium is installed; `make clients` installs one") }
        scratch = try Scratch()
        let (input, output) = (scratch.path + "/in", scratch.path + "/out")
        for pipe in [input, output] where mkfifo(pipe, 0o600) != 0 { throw Refused(description: "no pipe at \(pipe)") }
        // Opened for both directions, so that neither process blocks until the other opens its end.
        toBrowser = Glibc.open(input, O_RDWR | O_CLOEXEC)
        let fromBrowser = Glibc.open(output, O_RDWR | O_CLOEXEC)
        let flags = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
            "--remote-debugging-pipe", "--user-data-dir=\(scratch.path)/profile",
        ]
        child = try await ChildProcess(
            "/bin/sh", ["-c", #"exec "$0" "$@" 3<"$IN" 4>"$OUT""#, path] + flags, environment: ["IN": input, "OUT": output])
        Thread.detachNewThread { [weak self] in Self.read(fromBrowser) { self?.take($0) ?? false } }
        let target = try await call("Target.createTarget", ["url": "about:blank"])
        let session = try await call("Target.attachToTarget", ["targetId": target["targetId"] ?? .null, "flatten": true])
        state.withLock { $0.session = session["sessionId"]?.string }
        try await call("Page.enable")
        try await call("Runtime.enable")
        try await call("Log.enable")
        try await call(
            "Emulation.setDeviceMetricsOverride",
            [
                "width": .number(JSONNumber(Int64(width))), "height": .number(JSONNumber(Int64(height))), "deviceScaleFactor": 1,
                "mobile": false,
            ])
        let scheme = JSONValue.string(isDark ? "dark" : "light")
        try await call("Emulation.setEmulatedMedia", ["features": [["name": "prefers-color-scheme", "value": scheme]]])
    }

    deinit {
        state.withLock { $0.isGone = true }
        child.signal(SIGKILL)
        // Wakes the reading thread, which closes its own end.
        close(toBrowser)
    }

    /// Errors in the page: exceptions, console errors, refused requests.
    var complaints: [String] { state.withLock(\.complaints) }

    /// Navigates to an address.
    func open(_ address: String) async throws {
        let answer = try await call("Page.navigate", ["url": .string(address)])
        if let error = answer["errorText"]?.string { throw Refused(description: "\(address): \(error)") }
    }

    /// Returns the value of an expression, after awaiting a promise.
    @discardableResult
    func evaluate(_ expression: String) async throws -> JSONValue {
        let answer = try await call(
            "Runtime.evaluate", ["expression": .string(expression), "awaitPromise": true, "returnByValue": true])
        if let exception = answer["exceptionDetails"]?["exception"] {
            throw Refused(description: "\(expression): \(exception["description"]?.string ?? "")")
        }
        return answer["result"]?["value"] ?? .null
    }

    /// Waits until an expression is true.
    func until(_ expression: String, within limit: Duration) async throws {
        do {
            try await eventually(expression, within: limit) {
                // A page that is being replaced ends a script.
                (try? await evaluate("Boolean(\(expression))"))?.bool == true
            }
        } catch let error as NeverCame {
            let text = try await evaluate("document.body.innerText").string ?? ""
            throw NeverCame(description: "\(error); the page says: \(text.prefix(1500)); complaints: \(complaints)")
        }
    }

    /// Waits for the first button, link or label with exactly this name, and clicks on it with the mouse.
    func click(_ name: String) async throws {
        let find = """
            [...document.querySelectorAll('dialog[open] button, dialog[open] a, button, a, label')].find((one) =>
              (one.getAttribute('aria-label') ?? one.innerText).trim() === \(quoted(name)) && one.offsetParent !== null)
            """
        try await press(find, as: name)
    }

    /// Waits for the element that an expression returns, and clicks on it with the mouse.
    func press(_ expression: String, as name: String = "") async throws {
        try await until("(\(expression)) && !(\(expression)).disabled")
        let place = """
            (() => { const one = \(expression); if (!one) return null; one.scrollIntoView({ block: 'center', behavior: 'instant' });
              const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()
            """
        // A rerendering may move the element, so wait until its position is stable.
        var before = JSONValue.null
        try await eventually("\(name) stays where it is", pace: .milliseconds(50)) {
            let now = try await evaluate(place)
            defer { before = now }
            return now == before && now != .null
        }
        guard let x = before.array?.first, let y = before.array?.last else { throw Refused(description: "\(name) has no place") }
        for type in ["mousePressed", "mouseReleased"] {
            try await call("Input.dispatchMouseEvent", ["type": .string(type), "x": x, "y": y, "button": "left", "clickCount": 1])
        }
    }

    /// Types into the focused field.
    func type(_ text: String) async throws { try await call("Input.insertText", ["text": .string(text)]) }

    /// Presses a key, such as Tab or Enter.
    func key(_ name: String, code: Int64) async throws {
        for type in ["keyDown", "keyUp"] {
            var event: JSONValue = [
                "type": .string(type), "key": .string(name), "code": .string(name), "windowsVirtualKeyCode": .number(JSONNumber(code)),
            ]
            if name == "Enter" { event["text"] = "\r" }
            try await call("Input.dispatchKeyEvent", event)
        }
    }

    /// Writes a screenshot of the page as PNG.
    func screenshot(to file: String) async throws {
        let answer = try await call("Page.captureScreenshot", ["format": "png"])
        guard let data = answer["data"]?.string.flatMap({ Data(base64Encoded: $0) }) else { throw Refused(description: "no picture") }
        try data.write(to: URL(fileURLWithPath: file))
    }

    private func quoted(_ text: String) -> String { String(decoding: JSONValue.string(text).serialized(), as: UTF8.self) }

    // MARK: the protocol

    @discardableResult
    private func call(_ method: String, _ parameters: JSONValue = [:]) async throws -> JSONValue {
        let (id, session) = state.withLock { state -> (Int, String?) in
            state.nextID += 1
            return (state.nextID, state.session)
        }
        var message: JSONValue = ["id": .number(JSONNumber(Int64(id))), "method": .string(method), "params": parameters]
        if let session { message["sessionId"] = .string(session) }
        let bytes = message.serialized() + [0]
        guard write(toBrowser, bytes, bytes.count) == bytes.count else { throw Refused(description: "the browser is gone") }
        let answer = try await eventualValue("an answer to \(method); \(child.errors.suffix(500))", within: .seconds(60)) {
            state.withLock { $0.answers.removeValue(forKey: id) }
        }
        if let error = answer["error"] { throw Refused(description: "\(method): \(error)") }
        return answer["result"] ?? .null
    }

    /// Handles one message; false ends the reading.
    private func take(_ bytes: [UInt8]) -> Bool {
        guard let message = try? JSONValue.parse(bytes) else { return true }
        return state.withLock { state in
            if let id = message["id"]?.integer {
                state.answers[Int(id)] = message
            } else if let complaint = Self.complaint(message) {
                state.complaints.append(complaint)
            }
            return !state.isGone
        }
    }

    private static func complaint(_ message: JSONValue) -> String? {
        switch message["method"]?.string {
        case "Runtime.exceptionThrown": "\(message["params"]?["exceptionDetails"] ?? .null)"
        case "Log.entryAdded" where message["params"]?["entry"]?["level"]?.string == "error":
            "\(message["params"]?["entry"]?["text"]?.string ?? "") \(message["params"]?["entry"]?["url"]?.string ?? "")"
        default: nil
        }
    }

    private static func read(_ descriptor: Int32, _ take: ([UInt8]) -> Bool) {
        var (held, piece) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
        defer { close(descriptor) }
        while true {
            var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            // Polls periodically, so that a browser object without other references is released.
            if Glibc.poll(&poll, 1, 1000) == 0 {
                if !take([]) { return }
                continue
            }
            let count = Glibc.read(descriptor, &piece, piece.count)
            guard count > 0 else { return }
            held += piece.prefix(count)
            while let end = held.firstIndex(of: 0) {
                guard take(Array(held[..<end])) else { return }
                held.removeFirst(end + 1)
            }
        }
    }
}
