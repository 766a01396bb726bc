// The faults of a running notes API, and of one as a value.
package import NotesAPI

extension NotesStore {
    /// The faults in force.
    package var faults: Faults {
        get { interference as? Faults ?? Faults() }
        set { interference = newValue }
    }
}

extension NotesServer {
    /// The faults in force. Use `inject` to change one while others count down.
    package var faults: Faults {
        get { withStore { $0.faults } }
        set { withStore { $0.faults = newValue } }
    }

    /// Changes the faults atomically.
    package func inject(_ change: (inout Faults) -> Void) {
        withStore { change(&$0.faults) }
    }
}
