// One client, its proxy and an API: the frame of the stories about a client's own writes (docs/outbox.md#effects).
import RockpoolCore
import RockpoolTesting
import Testing

/// The conditions under which a story is told.
struct Setting: CustomTestStringConvertible, Sendable {
    var caching = StoryAPI.Caching.noCache
    var answers = StoryAPI.Answers.representation
    /// `offline_response` of the resource.
    var promise = "accepted"

    var testDescription: String { "\(caching.rawValue), \(answers.rawValue), \(promise)" }

    static let promises = ["accepted", "optimistic"]

    /// Each `offline_response` with each caching.
    static let all = promises.flatMap { promise in StoryAPI.Caching.allCases.map { Setting(caching: $0, promise: promise) } }

    /// Each caching with each form of answer; `offline_response` alternates.
    static let answered = StoryAPI.Caching.allCases.enumerated().flatMap { row, caching in
        StoryAPI.Answers.allCases.enumerated().map { column, answers in
            Setting(caching: caching, answers: answers, promise: promises[(row + column) % promises.count])
        }
    }
}

/// A running story: `device` is the client with its proxy.
struct Story: Sendable {
    let api: StoryAPI
    let device: Device
    let port: Int

    static let base: JSONValue = ["title": "first", "status": "open", "count": 5, "done": false]

    /// Starts the API and the proxy; checks that the proxy stops cleanly.
    static func with(
        _ setting: Setting, resource: JSONValue = [:], upstream: JSONValue = [:], _ body: (Story) async throws -> Void
    ) async throws {
        let api = StoryAPI(setting.caching, answers: setting.answers)
        let port = try await api.open()
        do {
            let declared: JSONValue = ["offline_response": .string(setting.promise), "version": "etag", "updated_at": .null]
            let device = try await Device.start(api: port, resource: declared.merging(resource), upstream: upstream)
            try await body(Story(api: api, device: device, port: port))
            await device.close()
            try await #expect(device.server.stop() == .exit(0), "\(device.server.errors)")
        } catch {
            await api.close()
            throw error
        }
        await api.close()
    }

    func get(_ path: String) async throws -> Wire.Answer { try await device.gateway.send("GET", path) }

    /// Sends a write and expects that it is accepted, now or for later.
    @discardableResult
    func write(_ method: String, _ path: String, _ body: JSONValue? = nil, fields: [String] = []) async throws -> Wire.Answer {
        let answer = try await device.gateway.send(method, path, body, fields: fields)
        guard (200...299).contains(answer.status) else {
            throw NeverCame(description: "a success of \(method) \(path): \(answer.status) \(answer.text)")
        }
        return answer
    }

    /// Returns every conflict record.
    func conflicts() async throws -> [JSONValue] { try await device.records() }

    /// Connects to the API again and waits until every write is delivered or needs a person.
    func comeBack() async throws {
        try await device.network("auto")
        try await device.settle(within: .seconds(20))
    }

    /// Expects that both sides' changes stand at the API, or that the loss is recorded as a conflict.
    func expectBothSides(_ id: String, mine: JSONValue, theirs: JSONValue, _ location: SourceLocation = #_sourceLocation) async throws {
        let note = api.notes[id] ?? .null
        if try await !conflicts().isEmpty, note.merging(theirs) == note || note.merging(mine) == note { return }
        expectSame(note, note.merging(theirs).merging(mine), "the note at the API", location)
    }
}
