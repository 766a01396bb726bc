// Which keys of clients an outbox may hold, known without a read (docs/outbox.md#relayed-writes).
import GRDB
import Testing

@testable import RockpoolStore

@Suite struct KeptClientKeysTests {
    @Test func keysAreKnownUpToTheLimit() throws {
        let queue = try DatabaseQueue()
        let keys = KeptClientKeys(most: 3)
        try queue.write { db in
            try db.execute(sql: "CREATE TABLE op (client_key TEXT); INSERT INTO op VALUES ('there'), (NULL)")
            try keys.begin(on: db)
            try db.execute(sql: "INSERT INTO op VALUES ('second'), (NULL), ('third')")
        }
        for key in ["there", "second", "third"] { #expect(keys.mayHold([key])) }
        #expect(!keys.mayHold(["new"]) && keys.mayHold(["new", "there"]))
        // One that is gone again is still taken for held: the database knows better.
        try queue.write { try $0.execute(sql: "DELETE FROM op") }
        #expect(keys.mayHold(["there"]))
        try queue.write { try $0.execute(sql: "INSERT INTO op VALUES ('one too many')") }
        #expect(keys.mayHold(["new"]))
    }

    @Test func moreKeysThanTheLimitAtTheStart() throws {
        let queue = try DatabaseQueue()
        let keys = KeptClientKeys(most: 1)
        try queue.write { db in
            try db.execute(sql: "CREATE TABLE op (client_key TEXT); INSERT INTO op VALUES ('one'), ('two')")
            try keys.begin(on: db)
        }
        #expect(keys.mayHold(["new"]))
    }
}
