// Leaves new clients in the kernel's accept queue while few descriptors are left (docs/security-model.md#descriptors).
package import NIOCore

/// The first handler of a listening channel: holds back reads while the gauge is low, and retries after `pause`.
package final class AcceptGate: ChannelOutboundHandler {
    package typealias OutboundIn = Never

    private static let pause = TimeAmount.milliseconds(50)

    private let gauge: DescriptorGauge
    private var context: ChannelHandlerContext?
    private var isWaiting = false

    package init(_ gauge: DescriptorGauge) { self.gauge = gauge }

    package func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    package func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    package func read(context: ChannelHandlerContext) {
        if isWaiting { return }
        if gauge.mayAccept() { return context.read() }
        isWaiting = true
        let me = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: Self.pause) { me.value.lookAgain() }
    }

    private func lookAgain() {
        isWaiting = false
        if let context { read(context: context) }
    }
}
