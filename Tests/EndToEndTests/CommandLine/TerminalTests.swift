// The commands as a person meets them: a terminal of 80 columns, wrong words, the completions of a shell.
import Foundation
import HTTPTypes
import NotesAPI
import RockpoolCore
import RockpoolTesting
import Testing

@Suite(.timeLimit(.minutes(3))) struct TerminalTests {
    /// Runs `body` with a write that was refused, one that waits, and stored responses.
    private func with(_ body: (World, _ refused: String) async throws -> Void) async throws {
        try await World.with { world in
            _ = try await world.send("GET", "/v1/notes/1")
            _ = try await world.server.command("network", "offline")
            let refused = try await world.queued("POST", "/v1/notes", body: #"{"text":"without a title"}"#)
            _ = try await world.queued("PATCH", "/v1/notes/2", body: #"{"title":"from a place without any network at all"}"#)
            let answer = Faults.CannedAnswer(
                status: 422, fields: [.contentType: "application/json"], body: #"{"error":"title is missing"}"#, methods: [.post])
            world.api.inject { $0.canned = answer }
            _ = try await world.server.command("network", "auto")
            _ = try await world.server.operation(refused, reaching: "dead")
            try await body(world, refused)
        }
    }

    @Test func nothingIsCutAt80ColumnsAndTheReasonIsThere() async throws {
        try await with { world, refused in
            for words in [
                ["status"], ["outbox", "ls"], ["outbox", "show", refused], ["cache", "ls"], ["network"], ["sync", "log"], ["entities"],
            ] {
                let run = try await Terminal.run(words, on: world.server)
                #expect(run.status == 0 && !run.output.contains("…"), "\(words): \(run.output)")
            }
            let list = try await Terminal.run(["outbox", "ls"], on: world.server).output
            #expect(list.contains("the upstream has refused it") && list.contains(refused.suffix(8)), "\(list)")
            // On a fast machine it has just been accepted.
            #expect(list.contains(" ago") || list.contains("  now"), "\(list)")
            let status = try await Terminal.run(["status"], on: world.server).output
            #expect(
                status.replacing(/\s+/, with: " ").contains("Next: see the write and its answer: rockpool outbox show \(refused)"),
                "\(status)")
        }
    }

    /// Bodies are other people's text: what controls a terminal does not reach one.
    @Test func anExportDoesNotControlTheTerminal() async throws {
        try await World.with { world in
            _ = try await world.server.command("network", "offline")
            _ = try await world.queued("PATCH", "/v1/notes/2", body: "{\"title\":\"\u{202E}turned\u{9B}31m\"}")
            for form in ["jsonl", "curl"] {
                let run = try await Terminal.run(["outbox", "export", "--format", form], on: world.server)
                #expect(run.status == 0 && run.output.contains(form == "curl" ? "base64" : "turned"), "\(run.output)")
                #expect(!run.output.unicodeScalars.contains { ["\u{202E}", "\u{9B}"].contains($0) }, "\(form): \(run.output)")
            }
            let bundle = try await Terminal.run(["cache", "export", "-"], on: world.server)
            #expect(bundle.status == 64 && bundle.output.contains("a bundle is not for a terminal"), "\(bundle.status) \(bundle.output)")
        }
    }

    @Test func anOperationIsShownWithItsRequestAndItsAnswer() async throws {
        try await with { world, refused in
            let shown = try await world.server.command("outbox", "show", refused)
            for words in [
                "REQUEST", "POST http://", "content-type: application/json", "without a title", "ANSWER", "422", "title is missing",
            ] {
                #expect(shown.output.contains(words), "\(words) is not in \(shown.output)")
            }
            #expect(shown.output.contains("Next: rockpool outbox retry|discard|edit \(refused)"), "\(shown.output)")
            let summary = try await world.server.command("outbox", "summary")
            #expect(summary.output.contains("POST /v1/notes") && summary.output.contains("dead"), "\(summary.output)")
        }
    }

    @Test func aWrongWordIsAnsweredWithTheRightOnes() async throws {
        try await World.with { world in
            let wrong: [([String], Int32, String)] = [
                (["statsu"], 64, #"no command "statsu"; did you mean: rockpool stat"#),
                (["outbox", "lst"], 64, "did you mean: rockpool outbox ls"), (["help", "outbx"], 64, "did you mean: rockpool outbox"),
                (["outbox", "frobnicate"], 64, "there are ls, summary, show"),
                (["outbox", "--stat", "dead"], 64, "--state"), (["network", "of"], 64, "'auto', 'offline' or 'online'"),
                (["network", "offline", "--upstream", "nots"], 1, "declared are notes"),
                (["outbox", "ls", "--upstream", "nots"], 1, "declared are notes"),
                (["conflicts", "ls", "--upstream", "nots"], 1, "declared are notes"),
                (["tail", "--no-follow", "--upstream", "nots"], 1, "declared are notes"),
                (["cache", "ls", "--category", "asets"], 1, "there are assets"),
                (["outbox", "ls", "--state", "ded"], 64, "pending, inflight"),
            ]
            for (words, status, part) in wrong {
                let run = try await world.server.command(words)
                #expect(run.status == status && run.errors.contains(part), "\(words): \(run.status) \(run.errors)")
                #expect(run.errors.hasPrefix("rockpool: ") && run.errors.hasSuffix("\n") && !run.errors.contains("Error:"), "\(run.errors)")
            }
        }
    }

    @Test func aPortInUseNamesItsOwner() async throws {
        try await World.with { world in
            for option in ["--proxy-listen", "--admin-listen"] {
                let other = try Scratch()
                let taken = option == "--proxy-listen" ? world.server.proxy : world.server.admin
                let free = option == "--proxy-listen" ? "--admin-listen" : "--proxy-listen"
                let run = try await Command.rockpool([
                    "serve", "--state-dir", other.path + "/state", "--cache-dir", other.path + "/cache", option, taken, free, "127.0.0.1:0",
                ])
                #expect(
                    run.status == 1 && run.errors.contains("the port is in use by rockpool (process \(world.server.pid))"), "\(run.errors)")
            }
        }
    }

    /// The completions of bash, from the script that the program prints.
    private func completions(of words: [String], on server: ServerProcess) async throws -> [String] {
        let script = try await Command.rockpool(["--generate-completion-script", "bash"])
        let scratch = try Scratch()
        let file = try scratch.write(script.output, to: "rockpool.bash")
        try FileManager.default.createSymbolicLink(atPath: scratch.path + "/rockpool", withDestinationPath: Binary.path)
        let line = words.joined(separator: " ")
        let program = """
            source \(file); COMP_WORDS=(\(words.map { "'\($0)'" }.joined(separator: " "))); COMP_CWORD=\(words.count - 1)
            COMP_LINE='\(line)'; COMP_POINT=\(line.count); _rockpool rockpool '\(words.last ?? "")' '\(words.dropLast().last ?? "")'; printf '%s\\n' "${COMPREPLY[@]}"
            """
        let run = try await Command.run(
            "/bin/bash", ["-c", program],
            environment: ["PATH": "\(scratch.path):/usr/bin:/bin", "ROCKPOOL_STATE_DIR": server.stateDirectory, "HOME": scratch.path])
        return run.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
    }

    @Test func aShellCompletesIdsStatesAndUpstreams() async throws {
        try await with { world, refused in
            try await #expect(completions(of: ["rockpool", "outbox", "show", ""], on: world.server).contains(refused))
            try await #expect(completions(of: ["rockpool", "outbox", "ls", "--state", "de"], on: world.server).contains("dead"))
            try await #expect(completions(of: ["rockpool", "network", "offline", "--upstream", ""], on: world.server) == ["notes"])
        }
    }
}
