// The documentation that was installed with the program, or lies in its checkout (docs/reference/cli.md#docs).
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore
import RockpoolCore

/// The pages of a folder, all of them Markdown.
package struct DocumentationPages: Sendable {
    /// One page.
    package struct Page: Hashable, Sendable {
        /// Its path without `.md`: `guide/clients`.
        package let name: String
        /// Its first heading.
        package let title: String
    }

    package let directory: String

    /// The folder that belongs to a program; nil if there is none.
    /// - Parameter program: the path of the program.
    package init?(besides program: String) {
        var place = URL(fileURLWithPath: program).resolvingSymlinksInPath().deletingLastPathComponent()
        var candidates = [place.deletingLastPathComponent().appendingPathComponent("share/doc/rockpool/docs").path]
        // A build lies some folders deep in its checkout.
        for _ in 0..<4 {
            place.deleteLastPathComponent()
            candidates.append(place.appendingPathComponent("docs").path)
        }
        let found = candidates.first { FileManager.default.fileExists(atPath: $0 + "/guide/operating.md") }
        guard let found else { return nil }
        directory = found
    }

    /// The guides first, then the reference, then the design.
    package var pages: [Page] {
        ["guide", "reference", ""].flatMap { folder -> [Page] in
            let place = folder.isEmpty ? directory : "\(directory)/\(folder)"
            let files = (try? FileManager.default.contentsOfDirectory(atPath: place)) ?? []
            return files.filter { $0.hasSuffix(".md") }.sorted().compactMap { file in
                let name = (folder.isEmpty ? "" : folder + "/") + file.dropLast(3)
                guard let text = text(of: name) else { return nil }
                let heading = text.split(separator: "\n").first { $0.hasPrefix("# ") }
                return Page(name: name, title: heading.map { String($0.dropFirst(2)) } ?? name)
            }
        }
    }

    /// Returns the text of a page; nil if there is none of this name.
    package func text(of name: String) -> String? {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        let isPlain = parts.allSatisfy { part in
            !part.isEmpty && part.utf8.allSatisfy { ($0 | 0x20) >= 0x61 && ($0 | 0x20) <= 0x7A || $0 == UInt8(ascii: "-") }
        }
        guard isPlain, parts.count <= 2 else { return nil }
        return FileManager.default.contents(atPath: "\(directory)/\(name).md").map { String(decoding: $0, as: UTF8.self) }
    }
}

/// `/v1/docs`: the documentation, where nothing else can be reached (docs/reference/admin-api.md#docs).
struct DocumentationRoutes {
    /// Nil where none was installed.
    let pages: DocumentationPages?

    func add(to router: Router<AdminContext>) {
        router.get("/v1/docs") { _, _ in list() }
        router.get("/v1/docs/:name") { _, context in page(context.parameters.get("name") ?? "") }
        router.get("/v1/docs/:name/:page") { _, context in
            page((context.parameters.get("name") ?? "") + "/" + (context.parameters.get("page") ?? ""))
        }
    }

    private func list() -> Response {
        .json([
            "items": .array((pages?.pages ?? []).map { ["name": .string($0.name), "title": .string($0.title)] }), "next": .null,
        ])
    }

    private func page(_ name: String) -> Response {
        guard let text = pages?.text(of: name) else {
            return .problem(
                .notFound, detail: pages == nil ? "no documentation is installed with this program" : "there is no page \(name)")
        }
        return Response(
            status: .ok, headers: [.contentType: "text/markdown; charset=utf-8", .cacheControl: "no-store"],
            body: .init(byteBuffer: ByteBuffer(string: text)))
    }
}
