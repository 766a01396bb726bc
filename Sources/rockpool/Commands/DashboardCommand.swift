// `rockpool dashboard`: opens the dashboard in a browser, with the right to change things (docs/reference/cli.md#dashboard).
import ArgumentParser
import Foundation

struct DashboardCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dashboard", abstract: "Open the dashboard in a browser, with a one-time code in place of the admin token.",
        discussion: .examples(
            "rockpool dashboard",
            "rockpool dashboard --print  # the address, with its code",
            after: "The code is valid for a minute. Without a browser the address is printed."))
    @Flag(name: .long, help: "Print the address and open nothing.") var print = false
    @OptionGroup var common: CommonOptions

    func run() async throws {
        struct Code: Decodable { var url: String }
        let code = try await common.client().send(.post("/v1/dashboard/codes")).decoded(as: Code.self)
        let environment = ProcessInfo.processInfo.environment
        let hasScreen = environment["DISPLAY"] != nil || environment["WAYLAND_DISPLAY"] != nil || environment["BROWSER"] != nil
        guard !print, hasScreen, let opener = Tool("xdg-open") ?? Tool("gio"), opener.run(Self.arguments(of: opener, code.url)).status == 0
        else {
            Display.output.print(code.url)
            return
        }
        Display.output.print("the dashboard is open in your browser")
    }

    private static func arguments(of opener: Tool, _ url: String) -> [String] { opener.path.hasSuffix("/gio") ? ["open", url] : [url] }
}
