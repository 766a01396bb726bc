// What clients were shown is kept over a crash, and never older than what they were told (docs/outbox.md#sight).
import Foundation
import HTTPTypes
import RockpoolCore
import RockpoolStore
import RockpoolTesting
import Testing

@testable import RockpoolEngine

@Suite struct SightLogTests {
    private static let item = "https://a.test/notes/1"
    private static let till = Viewer(partition: "shop", program: Viewer.Program(address: "10.0.0.1", userAgent: "till"))

    let scratch: Scratch
    /// Those of all runs.
    private let ticks = Ticks()

    init() throws { scratch = try Scratch() }

    private var file: String { scratch.path + "/sight.log" }

    /// The sight of the next run, after the last one was stopped in the middle.
    private func next() -> ClientSight {
        let sight = ClientSight(directory: scratch.path, index: IndexSeal(seal: .off), ticks: ticks, now: { Timestamp(milliseconds: 1000) })
        sight.takeUp()
        return sight
    }

    private func show(_ version: String, of url: String = item, by sight: ClientSight) {
        let state = ShownState(version: EntityTag(version), source: .cache, shownAt: Timestamp(milliseconds: 5))
        sight.note(state, at: url, to: Self.till, asked: sight.moment())
    }

    private func save(_ version: String?, to url: String = item, by sight: ClientSight) throws {
        let request = try RequestHead(method: .put, url: url)
        sight.note(ResponseHead(status: 200, fields: version.map { [.eTag: $0] } ?? [:]), to: request, by: Self.till)
    }

    @Test func whatWasShownIsKnownAfterACrash() async throws {
        show("\"1\"", by: next())
        try await Task.sleep(for: .milliseconds(400))
        guard case .shown(let state) = next().ground(of: Self.item, for: Self.till) else {
            Issue.record("it is forgotten")
            return
        }
        #expect(state.condition == "\"1\"" && state.seen == BaseSeen(at: Timestamp(milliseconds: 5), source: .cache, version: "\"1\""))
        #expect(next().ground(of: Self.item, for: Viewer(partition: "other")) == .unknown)
    }

    /// The end of a write is in the file when its note returns, and with it all that was shown before.
    @Test func noVersionFromBeforeAnOwnWriteComesBack() throws {
        let first = next()
        show("\"1\"", by: first)
        try save("\"2\"", by: first)
        let second = next()
        #expect(second.ground(of: Self.item, for: Self.till) == .written(version: "\"2\""))
        show("\"3\"", by: second)
        try save(nil, by: second)
        #expect(next().ground(of: Self.item, for: Self.till) == .written(version: nil))
    }

    @Test func aTornLineIsLeftOut() throws {
        let sight = next()
        show("\"1\"", by: sight)
        try save("\"2\"", by: sight)
        var bytes = try #require(FileManager.default.contents(atPath: file))
        bytes += Data(#"["shop",null,"#.utf8)
        try bytes.write(to: URL(fileURLWithPath: file))
        #expect(next().ground(of: Self.item, for: Self.till) == .written(version: "\"2\""))
    }

    /// After a power cut the last notes may be missing: then none counts.
    @Test(arguments: [true, false]) func aFileOfAnotherBootCountsOnlyIfItWasEnded(isEnded: Bool) throws {
        let sight = next()
        show("\"1\"", by: sight)
        try save("\"2\"", by: sight)
        if isEnded { sight.keep() }
        var text = try String(contentsOfFile: file, encoding: .utf8)
        let boot = try String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8).trimmingCharacters(in: .newlines)
        #expect(text.contains(boot) == !isEnded)
        text = text.replacingOccurrences(of: boot, with: "00000000-0000-0000-0000-000000000000")
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        let ground = next().ground(of: Self.item, for: Self.till)
        #expect(ground == (isEnded ? .written(version: "\"2\"") : .unknown))
    }

    @Test func theFileIsPrivateAndStaysSmall() async throws {
        let (sight, other) = (next(), "https://a.test/notes/2")
        try save("\"first\"", to: other, by: sight)
        for number in 0..<60_000 { try save("\"\(number)\"", by: sight) }
        try await eventually("the file is small") {
            (try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int ?? .max) < Int.mib(6)
        }
        #expect((try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int) == 0o600)
        // It is written anew beside the work: nothing from before that, and nothing that came meanwhile, is lost.
        let again = next()
        #expect(again.ground(of: Self.item, for: Self.till) == .written(version: "\"59999\""))
        #expect(again.ground(of: other, for: Self.till) == .written(version: "\"first\""))
    }

    @Test func withoutADirectoryNothingIsKept() throws {
        let sight = ClientSight(directory: nil, index: IndexSeal(seal: .off), ticks: Ticks(), now: { Timestamp(milliseconds: 1000) })
        show("\"1\"", by: sight)
        sight.keep()
        #expect(!FileManager.default.fileExists(atPath: file))
    }
}
