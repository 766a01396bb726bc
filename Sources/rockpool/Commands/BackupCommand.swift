// `rockpool backup` and `rockpool restore`: the outbox as one file (docs/reference/cli.md#backup, docs/storage.md#backup).
import ArgumentParser
import Foundation
import RockpoolCore
import RockpoolStore
import Synchronization

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Write the outbox, its conflicts and the configuration to one file, a tar archive.",
        discussion: .examples(
            "rockpool backup rockpool.tar",
            "rockpool backup rockpool.tar --force --with-keys",
            after: "Works with the server running or stopped. The file is complete or not written, and readable by its owner only."))
    @Argument(help: "The file.", completion: .file()) var file: String
    @Flag(name: .long, help: "Also the certificate authority and the admin token.") var withKeys = false
    @Flag(name: .long, help: "Replace an existing file.") var force = false
    @OptionGroup var common: CommonOptions

    func run() async throws {
        var call = AdminCall.post("/v1/backup")
        call.query["keys"] = withKeys ? "true" : nil
        let target = try NewFile(file, replacing: force)
        let written = Mutex<Int64>(0)
        do {
            try await Waiting.on("writing, \(ForPeople.bytes(written.withLock { $0 }))") { [call] in
                _ = try await common.withStores(having: { access($0.stateDir + "/data.sqlite", F_OK) == 0 }) { client in
                    try await client.send(
                        call,
                        through: AdminTransfer(sink: { bytes in
                            try target.write(bytes)
                            written.withLock { $0 += Int64(bytes.count) }
                        }))
                }
            }
            try target.finish()
        } catch {
            target.discard()
            throw error
        }
        Display.error.print("\(file): \(ForPeople.bytes(written.withLock { $0 }))".inOneLine)
    }
}

struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Make a state directory of a backup.",
        discussion: .examples(
            "rockpool restore rockpool.tar --state-dir restored",
            after: "The server must be stopped, and the state directory must hold no outbox."))
    @Argument(help: "The file of `rockpool backup`.", completion: .file()) var file: String
    @OptionGroup var common: CommonOptions

    func run() async throws {
        let directory = try common.load().configuration.storage.stateDir
        let (file, target) = (file, directory)
        let manifest: BackupManifest
        do {
            manifest = try await Waiting.on("restoring") { try Restore(from: file, into: target).run() }
        } catch let refusal as RestoreRefusal {
            throw CommandFailure(.failed, "\(file): \(refusal)".inOneLine)
        } catch {
            throw try await StartFailure.naming { throw error }
        }
        let kept = manifest.files.contains { $0.name == "rockpool.yaml" } ? "; its configuration is \(directory)/rockpool.yaml" : ""
        Display.output.print("restored into \(directory), as of \(ForPeople.time(manifest.createdAt))\(kept)".inOneLine)
    }
}
