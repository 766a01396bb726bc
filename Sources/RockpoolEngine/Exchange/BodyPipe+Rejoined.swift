// A body of which the beginning has been read already, on its way all the same.
import NIOCore
import RockpoolCore

extension BodyPipe {
    /// What was read already, then the rest as it comes.
    convenience init(_ start: ByteBuffer, then rest: any BodySource) {
        self.init()
        let (drains, feed) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        onSignal { signal in
            if signal == .abandoned { rest.abandon() }
            feed.yield()
        }
        Task {
            var room = drains.makeAsyncIterator()
            do throws(TransferFailure) {
                offer(start)
                while let chunk = try await rest.next() {
                    if !offer(chunk) { _ = await room.next() }
                }
                finish()
            } catch {
                fail(error)
            }
        }
    }
}
