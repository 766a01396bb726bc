// docs/outbox.md#reads: the list of a collection below an item that its upstream has none of yet.
import HTTPTypes
import Testing

@testable import RockpoolCore

@Suite struct EmptyListTests {
    private let tasks = Resource(collection: "/projects/{project}/tasks", items: "/data/tasks")

    private func empty(like body: JSONValue) -> JSONValue {
        tasks.emptyList(at: "/projects/loc_1/tasks", like: (body, "/projects/4/tasks"))
    }

    @Test func itHasTheFormOfAnother() {
        let other: JSONValue = [
            "data": ["tasks": [["id": 1], ["id": 2]], "count": 2], "next": "/projects/4/tasks?page=2", "hasMore": true, "limit": 25,
            "meta": ["total": 9, "page": ["total": 9, "size": 25]], "links": ["self": "https://api.test/projects/4/tasks", "next": "x"],
            "sort": "name",
        ]
        let expected: JSONValue = [
            "data": ["tasks": [], "count": 0], "next": .null, "hasMore": false, "limit": 25,
            "meta": ["total": 0, "page": ["total": 0, "size": 25]], "links": ["self": .null, "next": .null], "sort": "name",
        ]
        #expect(empty(like: other) == expected)
    }

    @Test func whatNamesAnotherParentIsLeftOut() {
        let other: JSONValue = [
            "data": ["tasks": []], "projectId": 4, "project": ["id": 4, "name": "a"], "labels": ["x"], "key": "4",
        ]
        #expect(empty(like: other) == ["data": ["tasks": []]])
    }

    @Test func withoutAnotherItIsBare() {
        #expect(tasks.emptyList(at: "/projects/loc_1/tasks") == ["data": ["tasks": []]])
        #expect(empty(like: ["error": "gone"]) == ["data": ["tasks": []]])
        #expect(Resource(collection: "/notes").emptyList(at: "/notes") == [])
    }

    @Test func itsCountsFollowWhatIsAdded() {
        let body = empty(like: ["data": ["tasks": [["id": 1]], "count": 1], "total": 1])
        let create = FoldedWrite(sequence: 1, method: .post, isItem: false, id: "loc_2", body: Array(#"{"n":1}"#.utf8))
        let value = CollectionFold.fold(body, query: nil, with: [create], resource: tasks).value
        #expect(value["total"] == 1 && value["data"]?["count"] == 1)
    }
}
