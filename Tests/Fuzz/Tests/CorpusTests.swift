// Runs the fuzzer's seeds and all its findings through their targets with every test run.
import FoundationEssentials
import FuzzTargets
import Testing

@Suite struct CorpusTests {
    private static let corpus = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().appending(path: "corpus")

    @Test(arguments: FuzzTarget.allCases)
    func everyPropertyHoldsForTheCorpus(_ target: FuzzTarget) throws {
        let folder = Self.corpus.appending(path: target.rawValue).path
        let names = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(!names.isEmpty)
        for name in names {
            let bytes = try Data(contentsOf: URL(filePath: folder).appending(path: name))
            #expect(throws: Never.self, "\(name)") { try target.run(Array(bytes)) }
        }
    }

    /// No test would read a corpus without a target.
    @Test func everyCorpusHasItsTarget() throws {
        let folders = try FileManager.default.contentsOfDirectory(atPath: Self.corpus.path)
        #expect(Set(folders) == Set(FuzzTarget.allCases.map(\.rawValue)))
    }
}
