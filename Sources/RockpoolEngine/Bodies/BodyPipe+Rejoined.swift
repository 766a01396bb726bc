// Makes a body readable from the start again after its beginning was read.
import NIOCore
import RockpoolCore

extension BodyPipe {
    /// The bytes already read, followed by the rest as it arrives.
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
                finish(rest.trailers)
            } catch {
                fail(error)
            }
        }
    }
}
