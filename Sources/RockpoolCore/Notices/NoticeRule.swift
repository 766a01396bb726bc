// Who is told about which events (docs/reference/configuration.md#notify).

/// One entry of `notify`: the events, their limits, and one way to tell.
package struct NoticeRule: Hashable, Sendable {
    package var on = NoticeKind.standard
    /// The age of the oldest waiting write from which `oldest_pending` applies.
    package var oldestPending = TimeSpan.minutes(10)
    /// The share of `storage.data_limit` in percent from which `storage` applies.
    package var storagePercent = 90
    /// The time without an answer from which `away` applies.
    package var away = TimeSpan.minutes(5)
    /// The period in which further events of one kind and upstream are counted instead of told.
    package var every = TimeSpan.minutes(1)
    /// The program and its arguments; empty: none.
    package var command: [String] = []
    package var webhook: WebhookSettings?
    /// True to show a notification on the desktop.
    package var desktop = false

    package init() {}

    /// The number of ways to tell; a valid rule has one.
    package var wayCount: Int { (command.isEmpty ? 0 : 1) + (webhook == nil ? 0 : 1) + (desktop ? 1 : 0) }

    /// What it tells, for messages: the webhook's URL without its query, the program, or `desktop`.
    package var target: String {
        if let webhook { return String(webhook.url.prefix { $0 != "?" }) }
        return desktop ? "desktop" : command.first ?? ""
    }
}

/// The receiver of a webhook.
package struct WebhookSettings: Hashable, Sendable {
    package var url: String
    /// The file with the signing secret.
    package var secretFile: String

    package init(url: String, secretFile: String) {
        self.url = url
        self.secretFile = secretFile
    }
}

/// Where the ends of writes may be posted (`Rockpool-Callback`).
package struct CallbackSettings: Hashable, Sendable {
    /// Origins that a client may name; empty: none.
    package var origins: [OriginAddress] = []
    /// The file with the signing secret.
    package var secretFile: String?

    package init() {}
}
