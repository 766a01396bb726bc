// Issue 5.5: a user decides a conflict, online or offline, and undoes the decision; no content of either side is ever lost
// (docs/reference/admin-api.md#conflicts).
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

/// A decision, the note after it, and the note after the decision was undone.
struct Resolved: CustomTestStringConvertible, Sendable {
    let resolution: String
    var merged: JSONValue?
    /// Title and body.
    let standing: [String]
    /// Nil when neither side has lost, so that nothing can be undone.
    let undone: [String]?

    var testDescription: String { resolution }
    static let all = [
        Resolved(resolution: "mine", standing: ["mine", "mine"], undone: ["theirs", "theirs"]),
        Resolved(resolution: "theirs", standing: ["theirs", "theirs"], undone: ["mine", "mine"]),
        Resolved(resolution: "both", standing: ["theirs", "theirs"], undone: nil),
        Resolved(
            resolution: "merged", merged: ["title": "mine", "body": "theirs", "status": "open", "tags": [], "count": 0],
            standing: ["mine", "theirs"], undone: ["theirs", "mine"]),
    ]
}

@Suite(.serialized) struct ResolutionTests {
    /// A note with title and body changed by both sides; the conflict waits for a user's decision.
    private struct Scene {
        let api: NotesServer
        let device: Device
        let operation: String
        let conflict: String

        var standing: [String]? { api.note(id: "1").map { note in ["title", "body"].map { note.members[$0]?.string ?? "" } } }

        func record(on device: Device) async throws -> JSONValue {
            try #require(try await device.admin.send("GET", "/v1/conflicts/\(conflict)").json)
        }

        func resolve(_ body: JSONValue) async throws -> Wire.Answer {
            try await device.admin.send("POST", "/v1/conflicts/\(conflict)/resolve", body)
        }

        func undo(on device: Device) async throws -> Wire.Answer {
            try await device.admin.send("POST", "/v1/conflicts/\(conflict)/undo", [:])
        }

        func end(_ device: Device) async throws {
            await device.close()
            try await #expect(device.server.stop() == .exit(0))
            await api.stop()
        }
    }

    private func met(_ strategy: String = "ask") async throws -> Scene {
        let api = try await NotesServer.start(seed: [["title": "base", "body": "base"]])
        let device = try await Device.start(api: api.port, resource: ["conflict": .string(strategy)])
        _ = try await device.gateway.send("GET", "/v1/notes/1")
        try await device.network("offline")
        let operation = try await device.queue("PATCH", "/v1/notes/1", ["title": "mine", "body": "mine"])
        _ = api.edit(note: "1", with: ["title": "theirs", "body": "theirs"])
        try await device.network("auto")
        try await device.settle()
        let conflict = try #require(try await device.conflict(of: operation)?["id"]?.string)
        return Scene(api: api, device: device, operation: operation, conflict: conflict)
    }

    @Test(arguments: Resolved.all, [false, true])
    func standsAndIsTakenBackAndNothingIsLost(_ row: Resolved, _ isOffline: Bool) async throws {
        let scene = try await met()
        let open = try await scene.record(on: scene.device)
        if isOffline { try await scene.device.network("offline") }
        var choice: JSONValue = ["resolution": .string(row.resolution)]
        choice["merged"] = row.merged
        let answer = try await scene.resolve(choice)
        #expect(answer.status == 200 && answer.json?["decidedBy"] == "person", "\(answer.text)")
        #expect(answer.json?["resolution"]?.string == row.resolution && answer.json?["closedAt"]?.string != nil)
        if isOffline {
            #expect(scene.standing == ["theirs", "theirs"])
            try await scene.device.network("auto")
        }
        try await scene.device.settle()
        #expect(scene.standing == row.standing)
        let isBoth = row.resolution == "both"
        #expect(scene.api.notes.map { $0.members["title"]?.string } == (isBoth ? ["theirs", "mine"] : row.standing.prefix(1).map { $0 }))
        try await #expect(scene.resolve(choice).status == 409, "the conflict is already decided")

        let decided = try await scene.record(on: scene.device)
        for side in ["base", "mine", "theirs"] { expectSame(decided[side], open[side], side) }
        #expect(decided["merged"]?["title"]?.string == (isBoth ? "mine" : row.standing.first))
        let device = try await scene.device.restarted()
        try await expectSame(scene.record(on: device), decided, "after a restart")

        let undo = try await scene.undo(on: device)
        try await device.settle()
        #expect(undo.status == (row.undone == nil ? 409 : 200), "\(undo.text)")
        #expect(scene.standing == row.undone ?? row.standing)
        try await expectSame(scene.record(on: device), decided, "after it was taken back")
        try await scene.end(device)
    }

    @Test(arguments: [("server-wins", "theirs", "mine"), ("client-wins", "mine", "theirs")])
    func whatAStrategyDecidedIsTakenBackToo(_ strategy: String, _ standing: String, _ undone: String) async throws {
        let scene = try await met(strategy)
        #expect(scene.standing == [standing, standing])
        // A later change by another client stays.
        _ = scene.api.edit(note: "1", with: ["status": "later"])
        try await #expect(scene.undo(on: scene.device).status == 200)
        try await scene.device.settle()
        #expect(scene.standing == [undone, undone] && scene.api.note(id: "1")?.members["status"] == "later")
        try await scene.end(scene.device)
    }

    @Test func whatIsDiscardedStaysReadableAndCanBeBroughtBack() async throws {
        let scene = try await met()
        try await #expect(scene.device.admin.send("DELETE", "/v1/operations/\(scene.operation)").status == 204)
        let operation = try await scene.device.admin.send("GET", "/v1/operations/\(scene.operation)").json
        #expect(operation?["state"] == "cancelled" && operation?["reason"] == "discarded")
        let record = try await scene.record(on: scene.device)
        #expect(record["resolution"] == "theirs" && record["decidedBy"] == "person" && record["mine"]?["title"] == "mine")
        try await #expect(scene.device.gateway.send("GET", "/v1/notes/1").json?["title"] == "theirs")
        try await #expect(scene.undo(on: scene.device).status == 200)
        try await scene.device.settle()
        #expect(scene.standing == ["mine", "mine"])
        try await scene.end(scene.device)
    }

    @Test func whatIsDecidedOnAnOlderStateIsMergedOrAskedAgain() async throws {
        let scene = try await met()
        _ = scene.api.edit(note: "1", with: ["title": "latest"])
        let shown = try await scene.record(on: scene.device)["theirs"] ?? [:]
        let merged = shown.merging(["title": "ours", "body": "ours"])
        let refused = try await scene.resolve(["resolution": "merged", "merged": merged])
        #expect(refused.status == 409 && refused.text.contains("/title"), "\(refused.text)")
        _ = scene.api.edit(note: "1", with: ["title": "theirs", "status": "later"])
        try await #expect(scene.resolve(["resolution": "merged", "merged": merged]).status == 200)
        try await scene.device.settle()
        #expect(scene.standing == ["ours", "ours"] && scene.api.note(id: "1")?.members["status"] == "later")
        try await scene.end(scene.device)
    }

    /// The decision and its effects are one transaction (docs/outbox.md#fault-points, K15).
    @Test(arguments: ["mine", "theirs", "both"]) func killedWhileAPersonDecidesItIsStillOpen(_ resolution: String) async throws {
        let scene = try await met()
        let open = try await scene.record(on: scene.device)
        let armed = try await scene.device.restarted(environment: ["ROCKPOOL_KILL_AT": "K15"])
        let choice: JSONValue = ["resolution": .string(resolution)]
        await #expect(throws: NeverCame.self) {
            _ = try await armed.admin.send("POST", "/v1/conflicts/\(scene.conflict)/resolve", choice)
        }
        try await #expect(armed.server.ending() == .signal(SIGKILL))
        let device = try await armed.restarted()
        try await expectSame(scene.record(on: device), open, resolution)
        #expect(scene.api.effects() == 0)
        try await #expect(device.admin.send("POST", "/v1/conflicts/\(scene.conflict)/resolve", choice).status == 200)
        try await device.settle()
        #expect(scene.api.effects() == (resolution == "theirs" ? 0 : 1))
        try await scene.end(device)
    }

    @Test func whatIsNoDecisionChangesNothing() async throws {
        let scene = try await met()
        for body in [[:], ["resolution": "merged"], ["resolution": "ours"], ["resolution": "mine", "merged": [:]]] as [JSONValue] {
            try await #expect(scene.resolve(body).status == 422)
        }
        try await #expect(scene.undo(on: scene.device).status == 409)
        try await #expect(scene.device.admin.send("POST", "/v1/conflicts/nobody/resolve", ["resolution": "mine"]).status == 404)
        #expect(scene.standing == ["theirs", "theirs"])
        try await #expect(scene.record(on: scene.device)["closedAt"]?.isNull == true)
        try await scene.end(scene.device)
    }
}
