// The phase of an admin API connection after each part of a request and its response, which selects the deadline.
import RockpoolEngine
import Testing

@testable import RockpoolAdmin

@Suite struct AdminProgressTests {
    private func phase(_ progress: AdminProgress, isWritable: Bool = true) -> ConnectionDeadline.Phase {
        progress.phase(isWritable: isWritable, boundsBodies: true)
    }

    @Test func anExchangeGoesThroughEveryPhase() {
        var progress = AdminProgress()
        #expect(phase(progress) == .idle && progress.isIdle)
        progress.readAll()
        #expect(phase(progress) == .head && progress.isIdle, "the decoder has received bytes but no complete head")
        progress.readHead()
        #expect(phase(progress) == .body && !progress.isIdle)
        progress.readAll()
        progress.readAll()
        progress.readBody()
        #expect(phase(progress) == .body)
        #expect(progress.phase(isWritable: true, boundsBodies: false) == .answering)
        progress.readEnd()
        progress.readAll()
        #expect(phase(progress) == .answering)
        #expect(phase(progress, isWritable: false) == .writing)
        progress.wroteEnd()
        #expect(phase(progress) == .writing && !progress.isIdle)
        progress.sentEnd()
        #expect(phase(progress) == .idle && progress.isIdle)
    }

    @Test func halfAHeadBehindARequestIsWaitedForOnceThatIsAnswered() {
        var progress = AdminProgress()
        progress.readHead()
        progress.readEnd()
        progress.readAll()
        progress.readAll()
        #expect(phase(progress) == .answering)
        progress.wroteEnd()
        progress.sentEnd()
        #expect(phase(progress) == .head && progress.isIdle)
    }

    @Test func anAnswerBeforeTheBodysEndMakesTheConnectionNoLessSlow() {
        var progress = AdminProgress()
        progress.readHead()
        progress.wroteEnd()
        progress.sentEnd()
        #expect(phase(progress) == .body && progress.isIdle)
    }

    @Test func whatIsNoRequestIsAnsweredAllTheSame() {
        var progress = AdminProgress()
        progress.wroteEnd()
        progress.sentEnd()
        #expect(phase(progress) == .idle && progress.isIdle)
        progress.readHead()
        #expect(!progress.isIdle)
    }
}
