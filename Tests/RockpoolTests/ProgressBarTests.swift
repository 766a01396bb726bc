// The line that shows the progress of an operation.
import Testing

@testable import rockpool

@Suite struct ProgressBarTests {
    @Test(arguments: [
        (0, 4, "cleaning up [--------------------] step"), (1, 4, "cleaning up [#####---------------] step"),
        (4, 4, "cleaning up [####################] step"), (9, 4, "cleaning up [####################] step"),
        (-1, 4, "cleaning up [--------------------] step"), (1, 0, "cleaning up [--------------------] step"),
    ])
    func aBarHasTheLengthOfWhatIsDone(done: Int, count: Int, expected: String) {
        let bar = ProgressBar("cleaning up")
        #expect(bar.text == "cleaning up")
        bar.show(done, of: count, words: "step")
        #expect(bar.text == expected)
    }
}
