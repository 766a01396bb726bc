// A window of a browser that a test controls.
import RockpoolCore
import RockpoolTesting

/// One page, which shows addresses and evaluates expressions.
protocol PageWindow: Sendable {
    /// Navigates to an address.
    func open(_ address: String) async throws

    /// Returns the value of an expression, after awaiting a promise.
    @discardableResult
    func evaluate(_ expression: String) async throws -> JSONValue

    /// Waits until an expression is true.
    func until(_ expression: String, within limit: Duration) async throws
}

extension PageWindow {
    /// Waits until an expression is true.
    func until(_ expression: String) async throws { try await until(expression, within: .seconds(30)) }

    /// Waits until a text is visible on the page.
    func sees(_ text: String, within limit: Duration = .seconds(30)) async throws {
        let quoted = String(decoding: JSONValue.string(text).serialized(), as: UTF8.self)
        try await until("document.body?.innerText.includes(\(quoted))", within: limit)
    }
}

/// The browsers that drive tests of pages.
enum BrowserKind: String, CaseIterable {
    case chromium, firefox

    /// The installed ones.
    static let installed = [(Self.chromium, Browser.isInstalled), (.firefox, Firefox.isInstalled)].filter(\.1).map(\.0)

    func window() async throws -> any PageWindow {
        switch self {
        case .chromium: try await Browser()
        case .firefox: try await Firefox()
        }
    }
}
