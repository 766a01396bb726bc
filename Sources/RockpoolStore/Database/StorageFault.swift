// Maps file and SQLite errors to faults of the disk (docs/storage.md#faults).
import GRDB
import Glibc
import RockpoolCore

extension StorageHealth.Fault {
    /// Returns nil for errors that do not concern the disk: a constraint, a store that is being closed, a body that ended early.
    init?(_ error: any Error) {
        switch error {
        case let error as FileError:
            switch error.code {
            case ENOSPC, EDQUOT: self = .full
            case EROFS, EACCES, EPERM: self = .readOnly
            case ENOENT, EEXIST: return nil
            default: self = .failing
            }
        case is DatabaseMoved: self = .failing
        case let error as TransactionLost: self = error.isFull ? .full : .failing
        case let error as DatabaseError:
            switch error.resultCode {
            case .SQLITE_FULL: self = .full
            case .SQLITE_READONLY, .SQLITE_PERM: self = .readOnly
            case .SQLITE_IOERR, .SQLITE_CANTOPEN, .SQLITE_CORRUPT, .SQLITE_NOTADB: self = .failing
            default: return nil
            }
        default: return nil
        }
    }
}
