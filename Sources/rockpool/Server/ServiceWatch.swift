// The watchdog of systemd.
import RockpoolStore
import ServiceLifecycle

/// Notifies the service manager that the server is alive, and that it stops.
struct ServiceWatch: Service {
    let notice: ServiceNotice
    let data: DataStore

    func run() async throws {
        await cancelWhenGracefulShutdown {
            guard let interval = notice.watchdogInterval else {
                try? await gracefulShutdown()
                return
            }
            while !Task.isCancelled {
                // The server is alive if its outbox responds, even with an error that a restart would not fix. If it hangs, systemd
                // restarts the server, and nothing is lost.
                _ = try? await data.counts()
                notice.send(state: "WATCHDOG=1")
                try? await Task.sleep(for: interval / 2)
            }
        }
        notice.send(state: "STOPPING=1")
    }
}
