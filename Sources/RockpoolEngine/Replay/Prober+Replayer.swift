// The prober that probes for the sake of queued writes.
extension Prober {
    package convenience init(engine: Engine, replayer: Replayer) {
        self.init(
            upstreams: engine.upstreams, reachability: engine.reachability, active: engine.active, now: engine.now
        ) { replayer.somethingWaits(for: $0) }
    }
}
