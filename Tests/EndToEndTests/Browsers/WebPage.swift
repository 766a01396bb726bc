// A page of its own origin in a real browser, which calls the API by `fetch`.
import Foundation
import RockpoolCore
import RockpoolTesting

/// An empty page on a loopback port of its own, open in a browser.
final class WebPage: Sendable {
    /// The origin as browsers write it.
    let origin: String
    private let host: RawServer
    private let browser: any PageWindow

    /// - Parameter name: The host in the page's address, `127.0.0.1` or `localhost`: a site of its own each.
    static func serve() async throws -> RawServer {
        try await RawServer.answering { _ in
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 19\r\n\r\n<title>page</title>"
        }
    }

    /// Opens the page that `host` serves, under the name `name`.
    init(_ host: RawServer, name: String = "127.0.0.1", in browser: any PageWindow) async throws {
        (self.host, self.browser) = (host, browser)
        origin = "http://\(name):\(host.port)"
        try await browser.open(origin)
        try await browser.until("location.origin === '\(origin)' && document.readyState === 'complete'")
    }

    /// Sends a request by `fetch`. Returns status, `body` as text and the fields that the page may read; `error` if the browser refused.
    func fetch(_ method: String, _ url: String, json: String? = nil, text: String? = nil, mode: String = "cors") async throws -> JSONValue {
        var options = "method: '\(method)', mode: '\(mode)', credentials: 'include'"
        if let json { options += ", headers: {'Content-Type': 'application/json'}, body: JSON.stringify(\(json))" }
        if let text { options += ", headers: {'Content-Type': 'text/plain'}, body: '\(text)'" }
        return try await browser.evaluate(
            """
            (async () => {
              try {
                const reply = await fetch('\(url)', {\(options)});
                return {status: reply.status, type: reply.type, body: await reply.text(), fields: Object.fromEntries(reply.headers)};
              } catch (error) { return {error: String(error)}; }
            })()
            """)
    }

    /// Submits a form, and waits for the page that answers.
    func submit(to url: String) async throws {
        try await browser.evaluate(
            """
            (() => { const form = document.createElement('form'); form.method = 'POST'; form.action = '\(url)';
              form.innerHTML = '<input name="title" value="forged">'; document.body.append(form); form.submit(); })()
            """)
        try await browser.until("location.href === '\(url)' && document.readyState === 'complete'")
    }
}
