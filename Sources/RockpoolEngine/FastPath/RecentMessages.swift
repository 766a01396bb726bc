// The messages last sent by one event loop, found without a lock (docs/architecture.md#many-cores).
import NIOCore
import RockpoolCore
import RockpoolStore

/// A small table of one event loop: a message that the loop has found under the memory tier's lock is sent again without it while the tier is
/// unchanged.
package final class RecentMessages {
    private struct Place {
        let hash: Int
        let reply: FastPathReply
        let form: FastPathReply.Form
        let reader: HotReader
        let message: HotMessage
        let moment: UInt64
    }

    /// Places of one loop. With `sizeLimit`, a loop keeps at most 2 MiB of bodies from being freed.
    private static let count = 128
    /// Bytes of the largest message and of the largest body that are kept.
    private static let sizeLimit = HotMessage.joinLimit

    /// Selects the hits that are recorded.
    var sampling = HotSampling()
    private var places = [Place?](repeating: nil, count: count)

    /// Returns the message for a request.
    /// - Parameter moment: `CacheStore.hotChanges`.
    func message(
        to arrival: PlainArrival, hash: Int, moment: UInt64, now: Timestamp, epoch: UInt64
    ) -> (message: HotMessage, reader: HotReader)? {
        guard let place = places[hash & (Self.count - 1)], place.hash == hash, place.moment == moment,
            place.message.isValid(at: now, epoch: epoch), place.reader.isFor(arrival), place.reply.answers(arrival),
            place.reply.form(for: arrival) == place.form
        else { return nil }
        return (place.message, place.reader)
    }

    func keep(_ message: HotMessage, of reply: FastPathReply, as form: FastPathReply.Form, for reader: HotReader, hash: Int, moment: UInt64)
    {
        guard message.bytes.readableBytes <= 2 * Self.sizeLimit, message.body?.readableBytes ?? 0 <= Self.sizeLimit else { return }
        places[hash & (Self.count - 1)] = Place(hash: hash, reply: reply, form: form, reader: reader, message: message, moment: moment)
    }
}
